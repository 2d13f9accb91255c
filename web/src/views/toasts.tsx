import type { JSX } from 'preact'
import { useDashboard } from '../state/context.js'
import { useStore } from '../state/store.js'
import { Icon } from './icon.js'

/** What was done, said once, also to a screen reader. */
export function Toasts(): JSX.Element {
  const dashboard = useDashboard()
  const toasts = useStore(dashboard.toasts)
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.map(({ id, kind, text }) => (
        <div key={id} class={`toast ${kind}`}>
          <span>{text}</span>
          <button
            type="button"
            class="icon-button"
            aria-label="Dismiss"
            onClick={() => dashboard.dismiss(id)}
          >
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  )
}
