import { entryOverheadBytes, type HeaderField, staticFields, usualTableBytes } from './hpack-tables.js'

/** Index of a field, or of a name alone. */
const staticIndexes = new Map<string, number>()
for (const [index, [name, value]] of [...staticFields.entries()].reverse()) {
  staticIndexes.set(name, index + 1)
  staticIndexes.set(keyOf([name, value]), index + 1)
}

/**
 * Writes the header blocks of one connection. Few fields are sent again and again, so that each is put into the table once, for as long as
 * there is room, and none is ever taken out: the same fields are then the same few octets. RFC 7541.
 */
export class HpackEncoder {
  #mostBytes = usualTableBytes
  #tableBytes = 0
  readonly #positions = new Map<string, number>()
  /** Before the next block. */
  #sizes: number[] = []
  /** Blocks that change nothing, for the table as it is. */
  readonly #blocks = new Map<readonly HeaderField[], Buffer>()

  /** @param bytes - the most that the other side keeps. */
  setTable(bytes: number): void {
    const most = Math.min(bytes, usualTableBytes)
    if (most === this.#mostBytes) return
    this.#mostBytes = most
    this.#tableBytes = 0
    this.#positions.clear()
    this.#blocks.clear()
    this.#sizes = [0x20, ...integer(0x20, 5, most)]
  }

  /** @param fields - the same list for the same fields. */
  block(fields: readonly HeaderField[]): Buffer {
    const known = this.#blocks.get(fields)
    if (known !== undefined) return known
    const before = this.#positions.size
    const octets = [...this.#sizes, ...fields.flatMap((field) => this.#field(field))]
    const block = Buffer.from(octets)
    if (this.#positions.size > before) this.#blocks.clear()
    else if (this.#sizes.length === 0) this.#blocks.set(fields, block)
    this.#sizes = []
    return block
  }

  #field(field: HeaderField): readonly number[] {
    const key = keyOf(field)
    const position = this.#positions.get(key)
    const index =
      position === undefined ? staticIndexes.get(key) : staticFields.length + this.#positions.size - position
    if (index !== undefined) return integer(0x80, 7, index)
    const [name, value] = field
    const bytes = name.length + value.length + entryOverheadBytes
    const isKept = this.#tableBytes + bytes <= this.#mostBytes
    const nameIndex = staticIndexes.get(name) ?? 0
    const literal = [
      ...(isKept ? integer(0x40, 6, nameIndex) : integer(0, 4, nameIndex)),
      ...(nameIndex === 0 ? text(name) : []),
      ...text(value),
    ]
    if (isKept) {
      this.#tableBytes += bytes
      this.#positions.set(key, this.#positions.size)
    }
    return literal
  }
}

function keyOf([name, value]: HeaderField): string {
  return `${name}\0${value}`
}

function text(value: string): readonly number[] {
  const bytes = Buffer.from(value, 'latin1')
  return [...integer(0, 7, bytes.length), ...bytes]
}

/** RFC 7541, 5.1. @param bits - of the first octet, beside `mark`. */
function integer(mark: number, bits: number, value: number): readonly number[] {
  const most = 2 ** bits - 1
  if (value < most) return [mark | value]
  const octets = [mark | most]
  let rest = value - most
  for (; rest >= 128; rest = Math.floor(rest / 128)) octets.push((rest % 128) | 0x80)
  octets.push(rest)
  return octets
}
