import type { JSX } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { api } from '../api/client.js'
import type { Camera } from '../api/types.js'
import { useDashboard } from '../state/context.js'
import { CameraAdvanced, CameraBasics } from './camera-fields.js'
import { pictureOf, PreviewPanel, useTrial } from './camera-preview.js'
import { cameraName } from './camera-state.js'
import type { FormValues } from './camera-form.js'
import { Dialog } from './dialog.js'
import { changesBetween, costOf, formOf } from './edit-form.js'
import { CheckField, type FormState } from './fields.js'
import { failureOf, type FormFailure } from './form-failure.js'

type EditProps = Readonly<{ camera: Camera; onClose: () => void }>

/** Changes a camera. Only what was changed is sent, and nothing that somebody else has changed meanwhile is overwritten unseen. */
export function EditCamera({ camera, onClose }: EditProps): JSX.Element {
  const dashboard = useDashboard()
  const form = useRef<HTMLFormElement>(null)
  const [base, setBase] = useState(camera)
  const [values, setValues] = useState<FormValues>(() => formOf(camera))
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState<FormFailure | undefined>(undefined)
  const changes = changesBetween(formOf(base), values)
  const set = (name: string, value: string | boolean): void =>
    setValues((before) => ({ ...before, [name]: value }))
  const failed = (error: unknown): void => {
    setFailure(failureOf(error, values))
    requestAnimationFrame(() => form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus())
  }
  const trial = useTrial(() => ({ id: camera.id, ...changes }), failed)
  const submit = async (): Promise<void> => {
    setBusy(true)
    setFailure(undefined)
    try {
      const now = await api.camera(camera.id)
      if (isOther(now, base)) {
        // What was typed here stays; all else is as it is now.
        setValues({ ...formOf(now), ...typed(formOf(base), values) })
        setBase(now)
        setFailure({
          text: 'The camera was changed meanwhile.',
          hint: 'The form has what it is now, with your changes. Look, and save again.',
          byField: {},
        })
      } else {
        await dashboard.changeCamera(camera.id, changes)
        onClose()
      }
    } catch (error) {
      failed(error)
    }
    setBusy(false)
  }
  const state: FormState = { values, set, errors: failure?.byField ?? {} }
  const hasLogin = base.config.username !== undefined
  return (
    <Dialog title={`Edit ${cameraName(camera)}`} onClose={onClose} class="medium">
      <form
        ref={form}
        class="form"
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        {camera.origin === 'file' && (
          <p class="muted">
            This camera is in the pipeline file. Changes hold until the service is started anew, unless it is
            kept over a restart here.
          </p>
        )}
        <CameraBasics state={state} editing hasLogin={hasLogin} />
        {hasLogin && <CheckField state={state} name="removeLogin" label="Take user name and password away" />}
        <PreviewPanel trial={trial} />
        <details open>
          <summary>More settings</summary>
          <CheckField
            state={state}
            name="staticScene"
            label="While the picture does not change, use the last result again"
          />
          <CameraAdvanced state={state} picture={pictureOf(trial.preview)} />
        </details>
        <p class="muted" aria-live="polite">
          {costOf(changes)}
        </p>
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
          <button type="submit" class="button primary" disabled={busy || Object.keys(changes).length === 0}>
            {busy ? 'Saving…' : 'Save'}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

function isOther(now: Camera, base: Camera): boolean {
  return JSON.stringify([now.config, now.persist]) !== JSON.stringify([base.config, base.persist])
}

/** Fields that differ from what the form began with. */
function typed(before: FormValues, after: FormValues): FormValues {
  return Object.fromEntries(Object.entries(after).filter(([name, value]) => before[name] !== value))
}
