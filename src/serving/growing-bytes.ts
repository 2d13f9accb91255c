/** Bytes that come in pieces, kept in one buffer that is doubled when full: no object is kept for a piece. */
export class GrowingBytes {
  #bytes: Buffer = Buffer.alloc(0)
  #length = 0

  append(piece: Uint8Array): void {
    this.appendPart(piece, 0, piece.byteLength)
  }

  /** `source` from `start` to `end`. */
  appendPart(source: Uint8Array, start: number, end: number): void {
    const length = end - start
    this.#room(length)
    const [bytes, at] = [this.#bytes, this.#length]
    // To set up a copy takes longer than to copy a few bytes.
    if (length < 32) for (let i = 0; i < length; i++) bytes[at + i] = source[start + i]!
    else bytes.set(source.subarray(start, end), at)
    this.#length = at + length
  }

  appendUint32(value: number): void {
    this.#room(4)
    this.#length = this.#bytes.writeUInt32LE(value, this.#length)
  }

  appendByte(value: number): void {
    this.#room(1)
    this.#bytes[this.#length++] = value
  }

  /** As UTF-8. */
  appendText(text: string): void {
    this.#room(3 * text.length)
    this.#length += this.#bytes.write(text, this.#length)
  }

  /** What has come; a view that the next piece may leave behind. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  #room(more: number): void {
    const needed = this.#length + more
    if (needed <= this.#bytes.byteLength) return
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.byteLength, 256))
    grown.set(this.bytes)
    this.#bytes = grown
  }
}
