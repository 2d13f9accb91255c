/** Buffers come in these steps, so that texts of nearly one length fit into the same. */
const step = 256

/** A buffer this many times larger than its text is given back. */
const tooLarge = 4

/**
 * UTF-8 text that is kept for minutes and then gives way to another, in memory that both use.
 *
 * What lives for minutes and is always replaced piles up as garbage of the old generation, which V8 collects late: with objects, the
 * newest 4,000 results of eight cameras let the process grow and shrink by 60 MB.
 */
export class KeptText {
  #bytes = Buffer.alloc(0)
  #length = 0

  /** Bytes it holds, used or not. */
  get capacity(): number {
    return this.#bytes.length
  }

  /** Overwrites what it held. @param text - UTF-8; it is copied. */
  write(text: Uint8Array): void {
    const wanted = Math.ceil(text.length / step) * step
    if (wanted > this.capacity || this.capacity > tooLarge * wanted)
      this.#bytes = Buffer.allocUnsafeSlow(wanted)
    this.#bytes.set(text)
    this.#length = text.length
  }

  /** The text itself; it stands until the next one is written. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  includes(part: string): boolean {
    return this.bytes.includes(part)
  }

  toString(): string {
    return this.#bytes.toString('utf8', 0, this.#length)
  }
}
