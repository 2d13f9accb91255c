import type { JSX } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { ApiError } from '../api/client.js'
import { useDashboard } from '../state/context.js'
import { emptyForm, newCamera, suggestId, type FormValues } from './camera-form.js'
import { Dialog } from './dialog.js'
import { CheckField, SelectField, TextField, type FormState } from './fields.js'

type Failure = Readonly<{ text: string; hint: string; byField: Readonly<Record<string, string>> }>

/** The form for a new camera. The server checks it; what it finds stands beside the field. */
export function AddCamera({ onClose }: Readonly<{ onClose: () => void }>): JSX.Element {
  const dashboard = useDashboard()
  const form = useRef<HTMLFormElement>(null)
  const [values, setValues] = useState<FormValues>(emptyForm)
  const [idTyped, setIdTyped] = useState(false)
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState<Failure | undefined>(undefined)
  const set = (name: string, value: string | boolean): void => {
    if (name === 'id') setIdTyped(value !== '')
    setValues((before) => {
      const suggested = name === 'url' && !idTyped ? { id: suggestId(String(value)) } : {}
      return { ...before, ...suggested, [name]: value }
    })
  }
  const submit = async (): Promise<void> => {
    setBusy(true)
    try {
      await dashboard.addCamera(newCamera(values))
      onClose()
    } catch (error) {
      setFailure(failureOf(error))
      requestAnimationFrame(() => form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus())
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
        <Basics state={state} />
        <details open={hasAdvancedError(failure) || undefined}>
          <summary>More settings</summary>
          <Advanced state={state} />
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

function Basics({ state }: Readonly<{ state: FormState }>): JSX.Element {
  return (
    <>
      <TextField
        state={state}
        name="url"
        label="URL"
        placeholder="rtsp://192.0.2.10:554/stream1"
        help="RTSP camera, HTTP or HLS stream, video file or folder of pictures; push: for a camera that sends its pictures."
        autofocus
      />
      <div class="columns">
        <TextField
          state={state}
          name="username"
          label="User name"
          help="Of the camera, where it asks for a login."
        />
        <TextField
          state={state}
          name="password"
          label="Password"
          help="As it is, whatever its characters. Never shown again."
          hidden
        />
      </div>
      <div class="columns">
        <TextField
          state={state}
          name="id"
          label="Id"
          placeholder="dock-1"
          help="Letters, digits, . _ - and at most 64 of them."
        />
        <TextField
          state={state}
          name="name"
          label="Name"
          placeholder="Dock, north side"
          help="For people; may be left empty."
        />
      </div>
      <div class="columns">
        <TextField
          state={state}
          name="sampleFps"
          label="Frames per second"
          help="Analysed at most."
          inputMode="decimal"
        />
        <SelectField
          state={state}
          name="transport"
          label="Transport"
          help="TCP unless the network asks for UDP."
          options={[
            ['tcp', 'TCP'],
            ['udp', 'UDP'],
          ]}
        />
      </div>
      <CheckField state={state} name="persist" label="Keep this camera over a restart of the service" />
    </>
  )
}

function Advanced({ state }: Readonly<{ state: FormState }>): JSX.Element {
  return (
    <>
      <TextField
        state={state}
        name="analyseUrl"
        label="Sub-stream"
        placeholder="rtsp://192.0.2.10:554/stream2"
        help="Analysed in place of the stream above, which is opened for snapshots alone then."
      />
      <div class="columns">
        <SelectField
          state={state}
          name="decode"
          label="Decoded"
          help="Key frames alone where they come often enough."
          options={[
            ['full', 'every picture'],
            ['fast', 'every picture, filtered where needed'],
            ['keyframes', 'key frames alone'],
            ['auto', 'as the stream allows'],
          ]}
        />
        <SelectField
          state={state}
          name="hwaccel"
          label="Hardware decoding"
          help="Falls back to software."
          options={[
            ['none', 'none'],
            ['auto', 'auto'],
            ['vaapi', 'VAAPI'],
            ['cuda', 'CUDA'],
          ]}
        />
        <TextField
          state={state}
          name="maxWidthPx"
          label="Widest picture, px"
          placeholder="as sent"
          help="Wider ones are scaled down."
          inputMode="numeric"
        />
        <TextField
          state={state}
          name="displayAspectRatio"
          label="Shape of the picture"
          placeholder="as the stream says"
          help="Such as 16:9, for recorders that do not say it."
        />
        <TextField
          state={state}
          name="sampleAspectRatio"
          label="Shape of a pixel"
          placeholder="as the stream says"
          help="The same said of a pixel, such as 2:1."
        />
        <TextField
          state={state}
          name="stallTimeoutMs"
          label="Silence before restart, ms"
          placeholder="5000"
          help="500 to 600000."
          inputMode="numeric"
        />
      </div>
      <fieldset class="region">
        <legend>Region of interest, as fractions of the picture (empty: all of it)</legend>
        <div class="columns four">
          <TextField state={state} name="region.x" label="Left" placeholder="0" inputMode="decimal" />
          <TextField state={state} name="region.y" label="Top" placeholder="0" inputMode="decimal" />
          <TextField state={state} name="region.width" label="Width" placeholder="1" inputMode="decimal" />
          <TextField state={state} name="region.height" label="Height" placeholder="1" inputMode="decimal" />
        </div>
      </fieldset>
      <CheckField state={state} name="loop" label="Begin a file or folder anew at its end" />
      <CheckField state={state} name="enabled" label="Switched on" />
    </>
  )
}

function hasAdvancedError(failure: Failure | undefined): boolean {
  const basic = new Set(['url', 'username', 'password', 'id', 'name', 'sampleFps', 'transport', 'persist'])
  return Object.keys(failure?.byField ?? {}).some((path) => !basic.has(path))
}

function failureOf(error: unknown): Failure {
  if (!(error instanceof ApiError))
    return { text: error instanceof Error ? error.message : 'That did not work.', hint: '', byField: {} }
  const { detail, hint, problems } = error.problem
  const byField = Object.fromEntries(problems.map(({ path, message }) => [path, message]))
  const homeless = problems
    .filter(({ path }) => !(path in emptyForm))
    .map(({ path, message }) => `${path} ${message}`)
  if (problems.length === 0) return { text: detail, hint, byField }
  const text =
    problems.length === 1 ? 'One field needs a correction.' : `${problems.length} fields need a correction.`
  return { text, hint: homeless.join('; '), byField }
}
