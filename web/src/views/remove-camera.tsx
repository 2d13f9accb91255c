import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { useDashboard } from '../state/context.js'
import { Dialog } from './dialog.js'

/** Asks before a camera goes. */
export function RemoveCamera({ id, onClose }: Readonly<{ id: string; onClose: () => void }>): JSX.Element {
  const dashboard = useDashboard()
  const [busy, setBusy] = useState(false)
  const fromFile = dashboard.poller.cameras.value?.find((camera) => camera.id === id)?.origin === 'file'
  const remove = async (): Promise<void> => {
    setBusy(true)
    await dashboard.removeCamera(id)
    onClose()
  }
  return (
    <Dialog title="Remove this camera?" onClose={onClose} alert class="small">
      <p>
        <strong>{id}</strong> is disconnected at once. Other cameras are not touched.
        {fromFile && ' It is in the pipeline file, so it comes back when the service is started anew.'}
      </p>
      <div class="dialog-actions">
        <button type="button" class="button" onClick={onClose} autofocus>
          Keep it
        </button>
        <button type="button" class="button danger solid" disabled={busy} onClick={() => void remove()}>
          Remove
        </button>
      </div>
    </Dialog>
  )
}
