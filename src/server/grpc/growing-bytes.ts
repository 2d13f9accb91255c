/** Bytes that come in pieces, kept in one buffer that is doubled when full: no object is kept for a piece. */
export class GrowingBytes {
  #bytes: Buffer = Buffer.alloc(0)
  #length = 0

  append(piece: Uint8Array): void {
    this.#room(piece.byteLength)
    this.#bytes.set(piece, this.#length)
    this.#length += piece.byteLength
  }

  appendUint32(value: number): void {
    this.#room(4)
    this.#length = this.#bytes.writeUInt32LE(value, this.#length)
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
