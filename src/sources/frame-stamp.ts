import { nowMs, wallMs } from '../lifecycle/clock.js'

/** A step of the stream's clock that no frame rate explains. */
const jumpMs = 10_000

/** Stamps the frames of one camera: wall time never goes back, jumps of the stream's clock are noticed. */
export class FrameStamp {
  #capturedAtMs = 0
  #ptsMs: number | undefined

  /** Times of a frame that has just arrived. `jumped` when the stream's clock went back or leapt. */
  next(ptsMs: number): { capturedAtMs: number; arrivedMs: number; jumped: boolean } {
    this.#capturedAtMs = Math.max(this.#capturedAtMs, wallMs())
    const before = this.#ptsMs
    this.#ptsMs = ptsMs
    const jumped = before !== undefined && (ptsMs < before || ptsMs - before > jumpMs)
    return { capturedAtMs: this.#capturedAtMs, arrivedMs: nowMs(), jumped }
  }

  /** A new decoder begins with a clock of its own. */
  restart(): void {
    this.#ptsMs = undefined
  }
}
