import { huffmanText } from './hpack-huffman.js'
import { entryOverheadBytes, type HeaderField, staticFields, usualTableBytes } from './hpack-tables.js'
import { Http2SyntaxError } from './http2-syntax-error.js'

/** Values by name; of a name that comes more than once the first. */
export type HeaderFields = ReadonlyMap<string, string>

/** Reads the header blocks of one connection, in the order in which they come. RFC 7541. */
export class HpackDecoder {
  /** The newest first. */
  readonly #table: HeaderField[] = []
  #tableBytes = 0
  #mostBytes = usualTableBytes
  #block: Uint8Array = new Uint8Array()
  #at = 0

  /** @throws Http2SyntaxError, after which the connection is of no use */
  read(block: Uint8Array): HeaderFields {
    this.#block = block
    this.#at = 0
    const fields = new Map<string, string>()
    while (this.#at < block.length) {
      const first = block[this.#at]!
      if ((first & 0xe0) === 0x20) this.#resize(this.#integer(5))
      else {
        const [name, value] = first >= 0x80 ? this.#entry(this.#integer(7)) : this.#literal(first)
        if (!fields.has(name)) fields.set(name, value)
      }
    }
    return fields
  }

  #literal(first: number): HeaderField {
    const isKept = first >= 0x40
    const index = this.#integer(isKept ? 6 : 4)
    const name = index === 0 ? this.#text() : this.#entry(index)[0]
    const field = [name, this.#text()] as const
    if (isKept) this.#add(field)
    return field
  }

  #add(field: HeaderField): void {
    this.#table.unshift(field)
    this.#tableBytes += bytesOf(field)
    this.#evict()
  }

  #resize(bytes: number): void {
    if (bytes > usualTableBytes) throw new Http2SyntaxError('its table of headers is larger than it may be')
    this.#mostBytes = bytes
    this.#evict()
  }

  #evict(): void {
    while (this.#tableBytes > this.#mostBytes) this.#tableBytes -= bytesOf(this.#table.pop()!)
  }

  #entry(index: number): HeaderField {
    const field =
      index <= staticFields.length ? staticFields[index - 1] : this.#table[index - staticFields.length - 1]
    if (field === undefined) throw new Http2SyntaxError(`there is no header ${index} in its table`)
    return field
  }

  #text(): string {
    const isHuffman = (this.#octet() & 0x80) !== 0
    this.#at -= 1
    const length = this.#integer(7)
    const end = this.#at + length
    if (end > this.#block.length) throw new Http2SyntaxError('a header is longer than its block')
    const bytes = this.#block.subarray(this.#at, end)
    this.#at = end
    return isHuffman ? huffmanText(bytes) : Buffer.from(bytes).toString('latin1')
  }

  /** RFC 7541, 5.1. @param bits - that it has in its first octet. */
  #integer(bits: number): number {
    const most = 2 ** bits - 1
    let value = this.#octet() & most
    if (value < most) return value
    for (let scale = 1; ; scale *= 128) {
      const octet = this.#octet()
      value += (octet & 0x7f) * scale
      if (value > 2 ** 28) throw new Http2SyntaxError('a number in its headers is too large')
      if (octet < 0x80) return value
    }
  }

  #octet(): number {
    const octet = this.#block[this.#at++]
    if (octet === undefined) throw new Http2SyntaxError('a block of headers ends in its middle')
    return octet
  }
}

function bytesOf([name, value]: HeaderField): number {
  return name.length + value.length + entryOverheadBytes
}
