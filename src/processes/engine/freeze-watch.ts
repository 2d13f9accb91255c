import type { Frame } from '../../vision/frame.js'
import { pictureHash } from '../../vision/scene-signature.js'

/** So long no picture of a working sensor is the same; a drawn one, or an empty stream, may be. */
const doubtfulMs = 1_500

/**
 * Notices a camera that goes on sending the very same picture, as one with a frozen encoder does.
 *
 * It is told, not restarted: the connection is sound, and a restart loop would not thaw the camera.
 */
export class FreezeWatch {
  #hash = -1
  #sinceMs = 0
  #lastMs = 0
  #thawedMs = 0
  #told = false
  #takesNext = false

  /** @param afterMs - how long the picture must have been the same; 0 never tells. */
  constructor(readonly afterMs: number) {}

  /** Whether the picture has been the same for the set time. */
  get frozen(): boolean {
    return this.#told
  }

  /** When the picture came first that has come since; monotonic. */
  get sinceMs(): number {
    return this.#sinceMs
  }

  /** When the last freeze ended; 0 where there was none. */
  get thawedMs(): number {
    return this.#thawedMs
  }

  /** Whether the picture has been the same long enough that it may be a frozen one. */
  get isInDoubt(): boolean {
    return !this.#told && this.#lastMs - this.#sinceMs >= doubtfulMs
  }

  /** Pictures have another size from the next one on, which is taken for the same: a new one changes what comes after it. */
  sizeChanges(): void {
    this.#takesNext = true
  }

  /** @returns true once for each freeze, when it has lasted long enough. */
  frame({ rgbHwc, arrivedMs }: Frame): boolean {
    if (this.afterMs === 0) return false
    const hash = pictureHash(rgbHwc)
    this.#lastMs = arrivedMs
    if (this.#takesNext && this.#hash !== -1) this.#hash = hash
    this.#takesNext = false
    if (hash !== this.#hash) {
      if (this.#told) this.#thawedMs = arrivedMs
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
