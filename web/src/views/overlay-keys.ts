import { toggleOverlay, type OverlayPart } from '../state/overlay.js'
import { isTyping } from './shortcuts.js'

const partOf: Readonly<Record<string, OverlayPart>> = { b: 'boxes', n: 'names' }

/** Keys for what is drawn over the pictures, on the page and while a camera is enlarged. */
export function followOverlayKeys(): void {
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented || isTyping(event.target))
      return
    const part = partOf[event.key]
    // In other windows than that of a camera there are no pictures.
    if (part === undefined || document.querySelector('dialog[open]:not(.detail)') !== null) return
    event.preventDefault()
    toggleOverlay(part)
  })
}
