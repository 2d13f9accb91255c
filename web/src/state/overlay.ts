import { Store } from './store.js'

export type OverlayPart = 'boxes' | 'names'
/** What lies over the pictures: boxes, and names of classes at them and below. */
export type Overlay = Readonly<Record<OverlayPart, boolean>>

const key = 'gantry.overlay'

/** As the person left it in this browser; everything at first. */
export const overlay = new Store<Overlay>(savedOverlay())

export function toggleOverlay(part: OverlayPart): void {
  const { boxes, names } = overlay.value
  const next = part === 'boxes' ? { boxes: !boxes, names } : { boxes, names: !names }
  localStorage.setItem(key, JSON.stringify(next))
  overlay.set(next)
}

function savedOverlay(): Overlay {
  try {
    const { boxes, names } = JSON.parse(localStorage.getItem(key) ?? '{}') as Partial<Overlay>
    return { boxes: boxes !== false, names: names !== false }
  } catch {
    // What stands there is not ours.
    return { boxes: true, names: true }
  }
}
