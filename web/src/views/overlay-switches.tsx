import type { ComponentChildren, JSX } from 'preact'
import { overlay, toggleOverlay, type OverlayPart } from '../state/overlay.js'
import { useStore } from '../state/store.js'
import { Icon } from './icon.js'

const parts: readonly Readonly<{ part: OverlayPart; text: string; key: string; title: string }>[] = [
  { part: 'boxes', text: 'Boxes', key: 'b', title: 'Boxes around what was found' },
  { part: 'names', text: 'Names', key: 'n', title: 'Names of the classes over the pictures' },
]

/** What is drawn over the pictures. The keys work wherever nobody types. @param children - further switches of the place. */
export function OverlaySwitches({ children }: Readonly<{ children?: ComponentChildren }>): JSX.Element {
  const shown = useStore(overlay)
  return (
    <div class="overlay-switches" role="group" aria-label="Over the pictures">
      {parts.map(({ part, text, key, title }) => (
        <button
          key={part}
          type="button"
          class="switch"
          aria-pressed={shown[part]}
          aria-keyshortcuts={key}
          title={`${title} (${key})`}
          onClick={() => toggleOverlay(part)}
        >
          <Icon name={shown[part] ? 'eye' : 'eye-off'} />
          {text} <kbd aria-hidden="true">{key}</kbd>
        </button>
      ))}
      {children}
    </div>
  )
}
