import type { InferResponse, ParameterValue } from '../../runtime/infer.js'
import { countCopy } from '../../tensors/tensor-buffers.js'
import type { Tensor } from '../../tensors/tensor.js'
import { type EncodedMessage, MessageInParts } from './message-in-parts.js'

/**
 * Writes protobuf into a buffer that is kept and grows. What was written is taken by copy, so that the next message can begin.
 */
class ProtoWriter {
  #bytes = Buffer.allocUnsafeSlow(4096)
  length = 0

  varint(value: number): void {
    this.#reserve(10)
    let rest = value
    while (rest >= 128) {
      this.#bytes[this.length++] = (rest % 128) + 128
      rest = Math.floor(rest / 128)
    }
    this.#bytes[this.length++] = rest
  }

  /** An empty text is left out, unless it is a member of a oneof. */
  text(field: number, text: string, always = false): void {
    if (text === '' && !always) return
    const bytes = Buffer.byteLength(text)
    this.varint(field * 8 + 2)
    this.varint(bytes)
    this.#reserve(bytes)
    this.length += this.#bytes.write(text, this.length)
  }

  /** A message that `write` writes. Its length is put before it afterwards, in one byte where that is enough. */
  message(field: number, write: () => void): void {
    this.varint(field * 8 + 2)
    this.#reserve(1)
    const start = ++this.length
    write()
    const bytes = this.length - start
    if (bytes < 128) {
      this.#bytes[start - 1] = bytes
      return
    }
    const more = varintBytes(bytes) - 1
    this.#reserve(more)
    this.#bytes.copyWithin(start + more, start, this.length)
    this.length = start - 1
    this.varint(bytes)
    this.length = start + more + bytes
  }

  flag(field: number, value: boolean): void {
    this.varint(field * 8)
    this.varint(value ? 1 : 0)
  }

  double(field: number, value: number): void {
    this.varint(field * 8 + 1)
    this.#reserve(8)
    this.length = this.#bytes.writeDoubleLE(value, this.length)
  }

  /** Int64, negative numbers in ten bytes as protobuf has it. */
  int64(field: number, value: number | bigint): void {
    this.varint(field * 8)
    let rest = BigInt.asUintN(64, BigInt(value))
    this.#reserve(10)
    while (rest >= 128n) {
      this.#bytes[this.length++] = Number(rest & 127n) + 128
      rest >>= 7n
    }
    this.#bytes[this.length++] = Number(rest)
  }

  copyTo(target: Buffer): void {
    this.#bytes.copy(target, 0, 0, this.length)
  }

  taken(): Buffer {
    return Buffer.from(this.#bytes.subarray(0, this.length))
  }

  #reserve(bytes: number): void {
    if (this.length + bytes <= this.#bytes.byteLength) return
    const grown = Buffer.allocUnsafeSlow(Math.max(2 * this.#bytes.byteLength, this.length + bytes))
    this.#bytes.copy(grown, 0, 0, this.length)
    this.#bytes = grown
  }
}

const writer = new ProtoWriter()

/** So many bytes of tensors are copied into one message; more are sent from where they lie. */
const mostCopiedBytes = 256 * 1024

/** `ModelInferResponse`, outputs raw. Small ones are copied once; of large ones the loop touches no byte. */
export function encodeInferResponse(response: InferResponse): EncodedMessage {
  writer.length = 0
  writeHead(response)
  const rawBytes = rawLength(response.outputs)
  if (rawBytes > mostCopiedBytes) return inParts(response.outputs)
  const message = Buffer.allocUnsafe(writer.length + rawBytes)
  writer.copyTo(message)
  writeRaw(message, writer.length, response.outputs)
  return message
}

/** `ModelStreamInferResponse`. `triton_final_response` tells clients that no more comes for this request. */
export function encodeStreamResponse(response: InferResponse): EncodedMessage {
  const message = encodeInferResponse({
    ...response,
    parameters: { ...response.parameters, triton_final_response: true },
  })
  return wrapped(2, message)
}

/** `ModelStreamInferResponse` of a request that failed; its id tells which. */
export function encodeStreamError(message: string, id: string): Buffer {
  writer.length = 0
  writer.text(1, message)
  writer.message(2, () => writer.text(3, id))
  return writer.taken()
}

/** What the writer has, and the outputs behind it. */
function inParts(outputs: readonly Tensor[]): MessageInParts {
  const parts: Uint8Array[] = [writer.taken()]
  for (const { data } of outputs) {
    writer.length = 0
    writer.varint(6 * 8 + 2)
    writer.varint(data.byteLength)
    parts.push(writer.taken(), data)
  }
  return new MessageInParts(parts)
}

function wrapped(field: number, message: EncodedMessage): EncodedMessage {
  writer.length = 0
  writer.varint(field * 8 + 2)
  writer.varint(message.byteLength)
  if (message instanceof MessageInParts) return new MessageInParts([writer.taken(), ...message.parts])
  const outer = Buffer.allocUnsafe(writer.length + message.byteLength)
  writer.copyTo(outer)
  message.copy(outer, writer.length)
  countCopy(message.byteLength)
  return outer
}

function writeHead({ model, version, id, parameters, outputs }: InferResponse): void {
  writer.text(1, model)
  writer.text(2, version)
  writer.text(3, id)
  for (const [name, value] of Object.entries(parameters)) writeParameter(name, value)
  for (const output of outputs) writer.message(5, () => writeOutput(output))
}

function writeOutput({ name, datatype, shape }: Tensor): void {
  writer.text(1, name)
  writer.text(2, datatype)
  if (shape.length === 0) return
  writer.message(3, () => {
    for (const size of shape) writer.varint(size)
  })
}

function writeParameter(name: string, value: ParameterValue): void {
  writer.message(4, () => {
    writer.text(1, name)
    writer.message(2, () => writeValue(value))
  })
}

function writeValue(value: ParameterValue): void {
  if (typeof value === 'boolean') writer.flag(1, value)
  else if (typeof value === 'string') writer.text(3, value, true)
  else if (typeof value === 'bigint' || Number.isSafeInteger(value)) writer.int64(2, value)
  else writer.double(4, value)
}

function rawLength(outputs: readonly Tensor[]): number {
  return outputs.reduce((bytes, { data }) => bytes + 1 + varintBytes(data.byteLength) + data.byteLength, 0)
}

function writeRaw(message: Buffer, start: number, outputs: readonly Tensor[]): void {
  let at = start
  for (const { data } of outputs) {
    message[at++] = 6 * 8 + 2
    at = writeVarint(message, at, data.byteLength)
    message.set(data, at)
    at += data.byteLength
    countCopy(data.byteLength)
  }
}

function writeVarint(into: Buffer, start: number, value: number): number {
  let at = start
  let rest = value
  while (rest >= 128) {
    into[at++] = (rest % 128) + 128
    rest = Math.floor(rest / 128)
  }
  into[at++] = rest
  return at
}

function varintBytes(value: number): number {
  let bytes = 1
  for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) bytes++
  return bytes
}
