/**
 * Recycles frame buffers, because a fresh 1.2 MB buffer for each frame costs three times the hand-over itself.
 *
 * Buffers come and go by ownership: `take` gives one away, `give` takes it back. A buffer of another size (a pool of an older
 * model) or a detached one is let go.
 */
export class FramePool {
  readonly #free: ArrayBuffer[] = []

  constructor(
    readonly bytes: number,
    /** Most idle buffers kept. */
    readonly keep: number,
  ) {}

  get idle(): number {
    return this.#free.length
  }

  take(): ArrayBuffer {
    return this.#free.pop() ?? new ArrayBuffer(this.bytes)
  }

  give(buffer: ArrayBuffer): void {
    if (buffer.byteLength === this.bytes && this.#free.length < this.keep) this.#free.push(buffer)
  }
}
