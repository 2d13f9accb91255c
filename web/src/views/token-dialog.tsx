import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { savedToken } from '../api/token.js'
import { useDashboard } from '../state/context.js'
import { Dialog } from './dialog.js'

/** Asks for the token of the service; it is kept in this tab only. */
export function TokenDialog(): JSX.Element {
  const dashboard = useDashboard()
  const [token, setToken] = useState('')
  const [busy, setBusy] = useState(false)
  const [wrong, setWrong] = useState(savedToken() !== undefined)
  const unlock = async (): Promise<void> => {
    if (token === '') return
    setBusy(true)
    const opened = await dashboard.unlock(token)
    setBusy(false)
    setWrong(!opened)
  }
  return (
    <Dialog title="This service wants a token" onClose={() => undefined} fixed class="small">
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault()
          void unlock()
        }}
      >
        <p>
          It is the value of <code>server.token</code> in the pipeline file. This tab keeps it until it is
          closed.
        </p>
        <label class="field">
          <span class="field-label">Token</span>
          <input
            type="password"
            name="token"
            autocomplete="current-password"
            autofocus
            value={token}
            aria-invalid={wrong}
            aria-describedby="token-error"
            onInput={(event) => setToken(event.currentTarget.value)}
          />
          <span class="field-error" id="token-error" role="alert">
            {wrong ? 'The service did not take that token.' : ''}
          </span>
        </label>
        <div class="dialog-actions">
          <button type="submit" class="button primary" disabled={token === '' || busy}>
            Continue
          </button>
        </div>
      </form>
    </Dialog>
  )
}
