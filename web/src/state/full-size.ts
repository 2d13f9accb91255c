import { Store } from './store.js'

const key = 'gantry.full-size'

/** Whether one camera is shown in its own resolution, picture by picture, in place of what the model saw, live; as the person left it. */
export const fullSize = new Store<boolean>(localStorage.getItem(key) === 'true')

export function toggleFullSize(): void {
  const next = !fullSize.value
  localStorage.setItem(key, String(next))
  fullSize.set(next)
}
