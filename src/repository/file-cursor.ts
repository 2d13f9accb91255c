import { readSync } from 'node:fs'

const windowBytes = 64 * 1024

/** Reads a file forwards through a small window, and skips without reading. */
export class FileCursor {
  readonly #window = Buffer.alloc(windowBytes)
  #windowAt = 0
  #windowLength = 0
  #position = 0
  #end: number

  constructor(
    readonly fd: number,
    readonly fileBytes: number,
  ) {
    this.#end = fileBytes
  }

  /** Of the next byte, from the start of the file. */
  get position(): number {
    return this.#position
  }

  get atEnd(): boolean {
    return this.#position >= this.#end
  }

  /** Lets `read` see only the next `length` bytes, and goes on behind them. */
  within<T>(length: number, read: () => T): T {
    this.#need(length)
    const outerEnd = this.#end
    const innerEnd = this.#position + length
    this.#end = innerEnd
    const value = read()
    this.#position = innerEnd
    this.#end = outerEnd
    return value
  }

  /** @throws RangeError past the end. */
  byte(): number {
    this.#need(1)
    const at = this.#position - this.#windowAt
    const value = at >= 0 && at < this.#windowLength ? this.#window[at] : this.#refill()
    if (value === undefined) throw new RangeError('file ends inside a value')
    this.#position += 1
    return value
  }

  bytes(length: number): Buffer {
    this.#need(length)
    const out = Buffer.alloc(length)
    for (let done = 0; done < length;) {
      const got = readSync(this.fd, out, done, length - done, this.#position + done)
      if (got === 0) throw new RangeError('file ends inside a value')
      done += got
    }
    this.#position += length
    return out
  }

  skip(length: number): void {
    this.#need(length)
    this.#position += length
  }

  #need(length: number): void {
    if (length > this.#end - this.#position) throw new RangeError('file ends inside a value')
  }

  #refill(): number | undefined {
    this.#windowAt = this.#position
    this.#windowLength = readSync(this.fd, this.#window, 0, windowBytes, this.#position)
    return this.#windowLength === 0 ? undefined : this.#window[0]
  }
}

/** Unsigned LEB128, as protobuf writes it; values past 2^53 lose precision and are refused. */
export function readVarint(cursor: FileCursor): number {
  let value = 0
  let factor = 1
  for (let i = 0; i < 10; i++) {
    const byte = cursor.byte()
    value += (byte & 0x7f) * factor
    if (byte < 0x80) return value
    factor *= 128
  }
  throw new RangeError('varint longer than 10 bytes')
}

export type WireField = Readonly<{ number: number; wireType: number; length: number }>

/** Reads a tag. `length` is the number of bytes that follow it, for fixed and length-delimited fields; -1 for a varint. */
export function readField(cursor: FileCursor): WireField {
  const tag = readVarint(cursor)
  const wireType = tag % 8
  const number = Math.floor(tag / 8)
  if (number === 0) throw new RangeError('field number 0')
  switch (wireType) {
    case 0:
      return { number, wireType, length: -1 }
    case 1:
      return { number, wireType, length: 8 }
    case 2:
      return { number, wireType, length: readVarint(cursor) }
    case 5:
      return { number, wireType, length: 4 }
    default:
      throw new RangeError(`wire type ${wireType}`)
  }
}

export function skipField(cursor: FileCursor, field: WireField): void {
  if (field.length < 0) readVarint(cursor)
  else cursor.skip(field.length)
}
