import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { ApiError } from '../api/client.js'
import type { Model, ModelList } from '../api/types.js'
import { useDashboard } from '../state/context.js'
import { Dialog } from './dialog.js'

type ControlsProps = Readonly<{
  model: Model
  control: ModelList['server']['control']
  /** The model server does not answer. */
  isAway: boolean
}>

/** Loads and unloads where clients may; where not, says what to set. */
export function ModelControls({ model, control, isAway }: ControlsProps): JSX.Element | null {
  const dashboard = useDashboard()
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState('')
  const [asks, setAsks] = useState(false)
  const { name } = model
  const isServed = model.versions.some(({ state }) => state === 'READY')
  const change = async (action: Promise<void>): Promise<void> => {
    setBusy(true)
    setFailure('')
    await action.catch((error: unknown) => setFailure(textOf(error)))
    setBusy(false)
  }
  if (control === null || model.versions.length === 0) return null
  const load = (how: 'load' | 'ask'): void => void change(dashboard.loadModel(name, how))
  return (
    <div class="model-controls">
      {control === 'explicit' && (
        <>
          <button type="button" class="button" disabled={busy || isAway} onClick={() => load('load')}>
            {isServed ? 'Load again' : 'Load'}
          </button>
          {isServed && (
            <button
              type="button"
              class="button danger"
              disabled={busy || isAway}
              onClick={() => setAsks(true)}
            >
              Unload
            </button>
          )}
        </>
      )}
      {control === 'asked' && !isServed && (
        <button type="button" class="button" disabled={busy || isAway} onClick={() => load('ask')}>
          Load
        </button>
      )}
      {busy && (
        <span class="muted" role="status">
          Working on it
        </span>
      )}
      {control !== 'explicit' && !busy && <span class="muted">{whyNot(control)}</span>}
      {failure !== '' && (
        <p class="form-error" role="alert">
          {failure}
        </p>
      )}
      {asks && (
        <AskToUnload
          model={model}
          onClose={() => setAsks(false)}
          onUnload={() => {
            setAsks(false)
            void change(dashboard.unloadModel(name))
          }}
        />
      )}
    </div>
  )
}

function whyNot(control: 'none' | 'poll' | 'asked'): string {
  if (control === 'asked') return 'Loaded by the first who asks for it.'
  return control === 'poll'
    ? 'Follows its folder (models.control: poll).'
    : 'Loaded at the start. To load and unload here, set models.control: explicit.'
}

type AskProps = Readonly<{ model: Model; onClose: () => void; onUnload: () => void }>

/** Asks before a model goes. */
function AskToUnload({ model, onClose, onUnload }: AskProps): JSX.Element {
  return (
    <Dialog title="Unload this model?" onClose={onClose} alert class="small">
      <p>
        API clients that ask for <strong>{model.name}</strong> are refused from then on; requests that have
        begun are answered. It can be loaded again here.
        {model.forCameras.length > 0 && ' Cameras have it loaded for themselves, and go on.'}
      </p>
      <div class="dialog-actions">
        <button type="button" class="button" onClick={onClose} autofocus>
          Keep it
        </button>
        <button type="button" class="button danger solid" onClick={onUnload}>
          Unload
        </button>
      </div>
    </Dialog>
  )
}

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return 'That did not work.'
  const hint = error instanceof ApiError && error.problem.hint !== '' ? ` ${error.problem.hint}` : ''
  return error.message + hint
}
