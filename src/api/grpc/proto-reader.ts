import { TooLongHereError } from '../codec/here-or-elsewhere.js'

/** A message that is not as protobuf wants it. */
export class ProtoError extends Error {
  constructor(problem: string) {
    super(problem)
    this.name = 'ProtoError'
  }
}

/**
 * Reads protobuf's wire format out of bytes that it never copies: texts are decoded, bytes are views.
 *
 * Written for the messages that carry tensors. A general decoder copies bytes and makes an object for each 64-bit number.
 */
export class ProtoReader {
  /** Low and high half of the varint read last, unsigned. */
  low = 0
  high = 0
  /** Number and wire type of the field read last. */
  field = 0
  wire = 0

  constructor(
    readonly bytes: Buffer,
    public at = 0,
    public end = bytes.byteLength,
    /** Fields it may go through. */
    public fieldsLeft = Infinity,
  ) {}

  /** Moves to the next field; `false` at the end. @throws ProtoError; TooLongHereError past the fields it may go through */
  next(): boolean {
    if (this.at >= this.end) return false
    if (--this.fieldsLeft < 0) throw new TooLongHereError()
    this.varint()
    this.field = this.low >>> 3
    this.wire = this.low & 7
    if (this.high !== 0 || this.field === 0) throw new ProtoError('invalid field number')
    return true
  }

  /** Reads into `low` and `high`. @throws ProtoError */
  varint(): void {
    let low = 0
    let high = 0
    for (let shift = 0; shift < 70; shift += 7) {
      if (this.at >= this.end) throw new ProtoError('message ends within a number')
      const byte = this.bytes[this.at++] ?? 0
      if (shift < 28) low |= (byte & 127) << shift
      else if (shift === 28) {
        low |= (byte & 127) << 28
        high |= (byte & 127) >>> 4
      } else if (shift < 63) high |= (byte & 127) << (shift - 32)
      else high |= (byte & 1) << 31
      if (byte < 128) {
        this.low = low >>> 0
        this.high = high >>> 0
        return
      }
    }
    throw new ProtoError('number is too long')
  }

  /** The number of a varint field, as int64; not exact past 2^53. */
  int64(): number {
    this.expect(0)
    this.varint()
    return (this.high | 0) * 4_294_967_296 + this.low
  }

  uint64(): number {
    this.expect(0)
    this.varint()
    return this.high * 4_294_967_296 + this.low
  }

  boolean(): boolean {
    this.expect(0)
    this.varint()
    return this.low !== 0 || this.high !== 0
  }

  double(): number {
    this.expect(1)
    const at = this.take(8)
    return this.bytes.readDoubleLE(at)
  }

  text(): string {
    const end = this.lengthEnd()
    const text = this.bytes.toString('utf8', this.at, end)
    this.at = end
    return text
  }

  /** A view. */
  view(): Buffer {
    const end = this.lengthEnd()
    const view = this.bytes.subarray(this.at, end)
    this.at = end
    return view
  }

  /** Calls `read` with this reader narrowed to the message that the field holds. */
  message(read: (reader: this) => void): void {
    const end = this.lengthEnd()
    const outer = this.end
    this.end = end
    read(this)
    this.end = outer
    this.at = end
  }

  /** Past a field nobody knows. @throws ProtoError for groups, which proto3 does not have */
  skip(): void {
    if (this.wire === 0) this.varint()
    else if (this.wire === 1) this.take(8)
    else if (this.wire === 2) this.at = this.lengthEnd()
    else if (this.wire === 5) this.take(4)
    else throw new ProtoError('unknown wire type')
  }

  /** Where `bytes` bytes begin; moves past them. @throws ProtoError */
  take(bytes: number): number {
    const at = this.at
    if (bytes > this.end - at) throw new ProtoError('message ends within a field')
    this.at = at + bytes
    return at
  }

  /** @throws ProtoError when the field is of another type */
  expect(wire: number): void {
    if (this.wire !== wire)
      throw new ProtoError(`field ${this.field} has wire type ${this.wire}, expected ${wire}`)
  }

  /** Reads a length; the end of what it counts. */
  lengthEnd(): number {
    this.expect(2)
    this.varint()
    if (this.high !== 0 || this.low > this.end - this.at) throw new ProtoError('message ends within a field')
    return this.at + this.low
  }
}
