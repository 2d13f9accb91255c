import { Store } from './store.js'

const key = 'gantry.full-size'

/** Not everywhere known, and never wrong to ask: a browser that is to save data. */
type Line = Readonly<{ connection?: Readonly<{ saveData?: boolean }> }>

/**
 * Whether one camera that is looked at is shown in its own resolution, picture by picture, in place of what the model saw, live: as the person
 * left it; at first, unless the browser is to save data.
 */
export const fullSize = new Store<boolean>(savedFullSize())

export function toggleFullSize(): void {
  const next = !fullSize.value
  localStorage.setItem(key, String(next))
  fullSize.set(next)
}

function savedFullSize(): boolean {
  const saved = localStorage.getItem(key)
  if (saved !== null) return saved === 'true'
  return (navigator as Line).connection?.saveData !== true
}
