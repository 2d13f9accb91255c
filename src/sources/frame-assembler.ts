import type { FramePool } from '../frames/frame-pool.js'

/**
 * Fills frames from a byte stream that is read straight into them.
 *
 * The reader asks for `space()`, reads into it, and says how much came by `filled()`; nothing is copied or joined. Between two frames at
 * most one buffer is held.
 */
export class FrameAssembler {
  #buffer: ArrayBuffer | undefined
  #filledBytes = 0

  constructor(
    readonly pool: FramePool,
    /** Takes the finished frame and its buffer. */
    readonly onFrame: (rgbHwc: ArrayBuffer) => void,
  ) {}

  /** Where the next bytes belong: what is left of the frame at hand. */
  space(): Uint8Array {
    this.#buffer ??= this.pool.take()
    return new Uint8Array(this.#buffer, this.#filledBytes)
  }

  filled(bytes: number): void {
    this.#filledBytes += bytes
    if (this.#filledBytes < this.pool.bytes || !this.#buffer) return
    const frame = this.#buffer
    this.#buffer = undefined
    this.#filledBytes = 0
    this.onFrame(frame)
  }

  /** Gives a half-filled buffer back. */
  drop(): void {
    if (this.#buffer) this.pool.give(this.#buffer)
    this.#buffer = undefined
    this.#filledBytes = 0
  }
}
