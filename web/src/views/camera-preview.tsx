import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { api } from '../api/client.js'
import type { CameraPreview } from '../api/types.js'

export type Trial = Readonly<{ busy: boolean; preview: CameraPreview | undefined; try: () => void }>

/** A look at the camera as the form has it. @param failed - told what the service says of the form. */
export function useTrial(
  body: () => Readonly<Record<string, unknown>>,
  failed: (error: unknown) => void,
): Trial {
  const [busy, setBusy] = useState(false)
  const [preview, setPreview] = useState<CameraPreview | undefined>(undefined)
  const cut = useRef<AbortController | undefined>(undefined)
  // The camera is closed when the dialog is.
  useEffect(() => () => cut.current?.abort(), [])
  const look = async (): Promise<void> => {
    cut.current?.abort()
    const mine = new AbortController()
    cut.current = mine
    setBusy(true)
    setPreview(undefined)
    try {
      const seen = await api.preview(body(), mine.signal)
      if (!mine.signal.aborted) setPreview(seen)
    } catch (error) {
      if (!mine.signal.aborted) failed(error)
    }
    if (cut.current === mine && !mine.signal.aborted) setBusy(false)
  }
  return { busy, preview, try: () => void look() }
}

export const pictureOf = (preview: CameraPreview | undefined): string | undefined =>
  preview?.picture ? `data:${preview.picture.mime};base64,${preview.picture.base64}` : undefined

/** What the look has shown. */
export function PreviewPanel({ trial }: Readonly<{ trial: Trial }>): JSX.Element {
  const { busy, preview } = trial
  const picture = pictureOf(preview)
  return (
    <section class="preview" aria-live="polite" aria-label="Preview">
      <button type="button" class="button" disabled={busy} onClick={trial.try}>
        {busy ? 'Connecting…' : 'Try it'}
      </button>
      {preview === undefined && !busy && (
        <span class="muted">Shows the picture before anything is saved.</span>
      )}
      {preview !== undefined && (
        <div class={`preview-result ${preview.state}`}>
          {picture !== undefined && <img src={picture} alt="First picture of the camera" />}
          <p>
            <strong>{preview.state === 'ok' ? 'It works.' : 'No picture.'}</strong> {preview.detail}
            {preview.hint !== '' && `: ${preview.hint}`}
          </p>
          {preview.source !== null && (
            <p class="muted">
              {preview.source.widthPx} × {preview.source.heightPx}
              {preview.codec !== null && `, ${preview.codec}`}
              {preview.fps !== null && `, ${preview.fps} pictures/s`}
            </p>
          )}
          {preview.warnings.map((warning) => (
            <p key={warning} class="preview-warning">
              {warning}
            </p>
          ))}
        </div>
      )}
    </section>
  )
}
