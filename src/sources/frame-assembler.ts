import type { FramePool } from '../vision/frame-pool.js'

/**
 * Cuts a stream of bytes into frames without copying: the reader fills `space()` directly, which is the rest of the frame's own
 * buffer from the pool. Never more than one frame is under assembly.
 */
export class FrameAssembler {
  #buffer: ArrayBuffer | null = null
  #filledBytes = 0

  constructor(
    readonly pool: FramePool,
    /** Receives each full buffer and owns it. */
    readonly complete: (rgbHwc: ArrayBuffer) => void,
  ) {}

  /** Where the next bytes go; never empty. Valid until the next call of `space`, `filled` or `release`. */
  space(): Uint8Array {
    this.#buffer ??= this.pool.take()
    return new Uint8Array(this.#buffer, this.#filledBytes)
  }

  /** @param bytes - how many bytes were written at the start of the last `space()`. */
  filled(bytes: number): void {
    const buffer = this.#buffer
    if (buffer === null) return
    this.#filledBytes += bytes
    if (this.#filledBytes < this.pool.bytes) return
    this.#buffer = null
    this.#filledBytes = 0
    this.complete(buffer)
  }

  /** Gives the buffer of a half frame back. Only once nobody writes into `space()` any more. */
  release(): void {
    if (this.#buffer !== null) this.pool.give(this.#buffer)
    this.#buffer = null
    this.#filledBytes = 0
  }
}
