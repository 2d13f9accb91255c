import type { JSX } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { useDashboard } from '../state/context.js'
import { emptyForm, newCamera, suggestId, type FormValues } from './camera-form.js'
import { CameraAdvanced, CameraBasics } from './camera-fields.js'
import { pictureOf, PreviewPanel, useTrial } from './camera-preview.js'
import { Dialog } from './dialog.js'
import type { FormState } from './fields.js'
import { failureOf, type FormFailure } from './form-failure.js'

/** The form for a new camera. The server checks it; what it finds stands beside the field. */
export function AddCamera({ onClose }: Readonly<{ onClose: () => void }>): JSX.Element {
  const dashboard = useDashboard()
  const form = useRef<HTMLFormElement>(null)
  const [values, setValues] = useState<FormValues>(emptyForm)
  const [idTyped, setIdTyped] = useState(false)
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState<FormFailure | undefined>(undefined)
  const set = (name: string, value: string | boolean): void => {
    if (name === 'id') setIdTyped(value !== '')
    setValues((before) => {
      const suggested = name === 'url' && !idTyped ? { id: suggestId(String(value)) } : {}
      return { ...before, ...suggested, [name]: value }
    })
  }
  const failed = (error: unknown): void => {
    setFailure(failureOf(error, values))
    requestAnimationFrame(() => form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus())
  }
  const trial = useTrial(() => {
    const { id, ...rest } = newCamera(values)
    return id === undefined ? rest : { id, ...rest }
  }, failed)
  const submit = async (): Promise<void> => {
    setBusy(true)
    try {
      await dashboard.addCamera(newCamera(values))
      onClose()
    } catch (error) {
      failed(error)
    }
    setBusy(false)
  }
  const state: FormState = { values, set, errors: failure?.byField ?? {} }
  return (
    <Dialog title="Add a camera" onClose={onClose} class="medium">
      <form
        ref={form}
        class="form"
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        <CameraBasics state={state} />
        <PreviewPanel trial={trial} />
        <details open={hasAdvancedError(failure) || undefined}>
          <summary>More settings</summary>
          <CameraAdvanced state={state} picture={pictureOf(trial.preview)} />
        </details>
        <div class="form-error" role="alert">
          {failure !== undefined && (
            <>
              <strong>{failure.text}</strong> {failure.hint}
            </>
          )}
        </div>
        <div class="dialog-actions">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button primary" disabled={busy}>
            {busy ? 'Adding…' : 'Add camera'}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

function hasAdvancedError(failure: FormFailure | undefined): boolean {
  const basic = new Set(['url', 'username', 'password', 'id', 'name', 'sampleFps', 'transport', 'persist'])
  return Object.keys(failure?.byField ?? {}).some((path) => !basic.has(path))
}
