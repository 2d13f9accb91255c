import { InternalError } from '../errors.js'
import { FrameError, frameHeadBytes, frameKinds, writeFrameHead } from './frames.js'

/** Bytes of a number, and of a length. */
export const [numberBytes, lengthBytes] = [8, 4]

/** Bytes of a text, with its length. */
export function textBytes(text: string): number {
  return lengthBytes + Buffer.byteLength(text)
}

/** Bytes of a list of numbers, with its length. */
export function listBytes(values: readonly number[]): number {
  return lengthBytes + values.length * numberBytes
}

/**
 * The body of a frame of bytes, field by field: numbers are float64, texts UTF-8 and lists of numbers, both behind their length as uint32.
 * What has no length comes last.
 */
export class FieldWriter {
  readonly #frame: Buffer
  #at = frameHeadBytes

  /** @param fieldBytes - of all fields together, exactly. */
  constructor(fieldBytes: number) {
    this.#frame = Buffer.allocUnsafe(frameHeadBytes + fieldBytes)
  }

  number(value: number): void {
    this.#at = this.#frame.writeDoubleLE(value, this.#at)
  }

  length(value: number): void {
    this.#at = this.#frame.writeUInt32LE(value, this.#at)
  }

  list(values: readonly number[]): void {
    this.length(values.length)
    for (const value of values) this.number(value)
  }

  text(text: string): void {
    const bytes = this.#frame.write(text, this.#at + lengthBytes)
    this.length(bytes)
    this.#at += bytes
  }

  /** The frame up to the end of the fields. @param restBytes - of what follows them in the body. */
  frame(restBytes: number): Buffer {
    if (this.#at !== this.#frame.length)
      throw new InternalError(`${this.#at} bytes of fields instead of ${this.#frame.length}`)
    writeFrameHead(this.#frame, frameKinds.bytes, this.#at - frameHeadBytes + restBytes)
    return this.#frame
  }
}

/** Reads what a {@link FieldWriter} wrote. */
export class FieldReader {
  #at = 0

  constructor(readonly body: Buffer) {}

  /** @throws FrameError */
  number(): number {
    return this.body.readDoubleLE(this.#taken(numberBytes))
  }

  /** @throws FrameError */
  length(): number {
    return this.body.readUInt32LE(this.#taken(lengthBytes))
  }

  /** @throws FrameError */
  list(): readonly number[] {
    const length = this.length()
    if (length * numberBytes > this.body.length - this.#at)
      throw new FrameError(`a list of ${length} in a frame of ${this.body.length} bytes`)
    return Array.from({ length }, () => this.number())
  }

  /** @throws FrameError */
  text(): string {
    return this.bytes(this.length()).toString()
  }

  /** @returns a view. @throws FrameError */
  bytes(length: number): Buffer {
    const at = this.#taken(length)
    return this.body.subarray(at, at + length)
  }

  /** What is left; a view. */
  rest(): Buffer {
    return this.bytes(this.body.length - this.#at)
  }

  #taken(bytes: number): number {
    const at = this.#at
    if (bytes > this.body.length - at)
      throw new FrameError(`a field of ${bytes} bytes at ${at} of ${this.body.length}`)
    this.#at += bytes
    return at
  }
}
