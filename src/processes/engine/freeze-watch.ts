import type { Frame } from '../../vision/frame.js'
import { pictureHash } from '../../vision/scene-signature.js'

/**
 * Notices a camera that goes on sending the very same picture, as one with a frozen encoder does.
 *
 * It is told, not restarted: the connection is sound, and a restart loop would not thaw the camera.
 */
export class FreezeWatch {
  #hash = -1
  #sinceMs = 0
  #told = false
  #takesNext = false

  /** @param afterMs - how long the picture must have been the same; 0 never tells. */
  constructor(readonly afterMs: number) {}

  /** Whether the picture has been the same for the set time. */
  get frozen(): boolean {
    return this.#told
  }

  /** Pictures have another size from the next one on, which is taken for the same: a new one changes what comes after it. */
  sizeChanges(): void {
    this.#takesNext = true
  }

  /** @returns true once for each freeze, when it has lasted long enough. */
  frame({ rgbHwc, arrivedMs }: Frame): boolean {
    if (this.afterMs === 0) return false
    const hash = pictureHash(rgbHwc)
    if (this.#takesNext && this.#hash !== -1) this.#hash = hash
    this.#takesNext = false
    if (hash !== this.#hash) {
      this.#hash = hash
      this.#sinceMs = arrivedMs
      this.#told = false
      return false
    }
    if (this.#told || arrivedMs - this.#sinceMs < this.afterMs) return false
    this.#told = true
    return true
  }
}
