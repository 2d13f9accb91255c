import { TensorShapeError } from '../../runtime/errors.js'
import { elementBytes } from '../../tensors/element-type.js'
import { elementCount } from '../../tensors/tensor.js'
import type { PackedInput } from '../pack-inputs.js'
import type { BatchRows, OnnxJobOutput } from './onnx-protocol.js'
import { stringOffsets } from './strings.js'

/**
 * Fills batches up to the rows of a session and cuts the outputs to what was asked, in the thread of a session.
 *
 * Rows that are added repeat the last one: no value comes in that the model would not see anyway, and sums and extremes over the
 * batch, as some quantised models take them, stay what they are.
 */
export class BatchPadding {
  /** Written over by the next run. */
  readonly #buffers = new Map<string, Uint8Array<ArrayBuffer>>()

  constructor(readonly idle: BatchRows['idle']) {}

  /** The input with so many rows; its bytes are valid until the next call for the same input. */
  fill(input: PackedInput, rows: number, isText: boolean): PackedInput {
    const { name, shape, parts } = input
    const missing = rows - (shape[0] ?? 0)
    if (missing <= 0) return input
    const row = this.idle[name] ?? lastRow(input, isText)
    const filled = [...parts, ...Array<Uint8Array>(missing).fill(row)]
    return {
      name,
      shape: [rows, ...shape.slice(1)],
      parts: isText ? filled : [this.#gathered(name, filled)],
    }
  }

  /** @throws TensorShapeError for an output that has not a row for each of the batch. */
  cut(output: OnnxJobOutput, rows: number, items: number): OnnxJobOutput {
    const { name, datatype, shape, data } = output
    if (shape[0] !== rows)
      throw new TensorShapeError(
        `output '${name}' is [${shape.join(', ')}] for a batch of ${rows}: its first dimension is not the batch`,
      )
    if (items >= rows) return output
    const elements = elementCount(shape.slice(1)) * items
    const end = datatype === 'BYTES' ? stringOffsets(data)[elements]! : elements * elementBytes(datatype)
    // A copy: a view would keep the whole batch in memory for as long as the answer lives.
    return { name, datatype, shape: [items, ...shape.slice(1)], data: data.slice(0, end) }
  }

  #gathered(name: string, parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
    const bytes = parts.reduce((sum, part) => sum + part.byteLength, 0)
    const known = this.#buffers.get(name)
    const whole = known?.byteLength === bytes ? known : new Uint8Array(bytes)
    this.#buffers.set(name, whole)
    let at = 0
    for (const part of parts) {
      whole.set(part, at)
      at += part.byteLength
    }
    return whole
  }
}

/** Each request has a row at least, so that the last one lies in the last part. */
function lastRow({ shape, parts }: PackedInput, isText: boolean): Uint8Array {
  const last = parts.at(-1) ?? new Uint8Array()
  if (!isText) {
    const bytes = parts.reduce((sum, part) => sum + part.byteLength, 0)
    return last.subarray(last.byteLength - bytes / (shape[0] ?? 1))
  }
  const offsets = stringOffsets(last)
  return last.subarray(offsets[offsets.length - 1 - elementCount(shape.slice(1))])
}
