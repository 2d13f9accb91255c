import { atOnce, inTurns, type Pieces } from '../lifecycle/in-turns.js'
import { elementsOf } from '../tensors/elements.js'
import type { Tensor } from '../tensors/tensor.js'
import { isNumberDatatype } from '../tensors/element-type.js'
import { GrowingBytes } from './growing-bytes.js'
import type { InferRequest } from '../runtime/infer.js'
import type { LoadedModel } from '../runtime/loaded-model.js'
import { ServingError } from '../tensors/serving-error.js'

/** More elements than this in one item are not sorted for anybody. */
const mostElements = 1_000_000
/** A larger output is sorted in turns with what else the loop does. */
const mostBytesAtOnce = 64 * 1024
const pieceTexts = 1_024
const pieceSteps = 8_192

/**
 * The best classes of every item, as BYTES `<value>:<index>[:<label>]`, best first; equal values keep the order of their index.
 *
 * @param classes - how many; all there are if there are fewer.
 * @param labels - by index; classes without one are given without.
 * @param batched - whether the first size is a batch: then the answer is `[batch, classes]`, else `[classes]`.
 * @throws ServingError `INVALID_ARG` for types that have no order
 */
export function* classify(
  tensor: Tensor,
  classes: number,
  labels: readonly string[],
  batched: boolean,
): Pieces<Tensor> {
  const { datatype, shape } = tensor
  if (!isNumberDatatype(datatype) || datatype === 'BOOL')
    throw new ServingError(
      'INVALID_ARG',
      `class result not available for output due to unsupported type '${datatype}'`,
    )
  const values = elementsOf(datatype, tensor.data)
  const items = batched && shape.length > 0 ? (shape[0] ?? 1) : 1
  const size = items === 0 ? 0 : values.length / items
  if (size > mostElements) throw new ServingError('INVALID_ARG', 'classification output tensor too large')
  const count = Math.min(classes, size)
  const isFloat = datatype === 'FP32' || datatype === 'FP64'
  const texts = new GrowingBytes()
  let made = 0
  for (let item = 0; item < items; item++) {
    const best = yield* bestIndexes(values.subarray(item * size, (item + 1) * size), count)
    for (const index of best) {
      const value = values[item * size + index] ?? 0
      const label = labels[index]
      const shown = isFloat ? Number(value).toFixed(6) : String(value)
      const text = Buffer.from(`${shown}:${index}${label ? `:${label}` : ''}`)
      texts.appendUint32(text.byteLength)
      texts.append(text)
      if (++made % pieceTexts === 0) yield
    }
  }
  return {
    name: tensor.name,
    datatype: 'BYTES',
    shape: batched && shape.length > 0 ? [items, count] : [count],
    data: texts.bytes,
  }
}

/** Sorts by merging, from pairs upwards, so that it can be interrupted. */
function* bestIndexes(values: ArrayLike<number | bigint>, count: number): Pieces<Uint32Array> {
  let sorted = new Uint32Array(values.length)
  let merged = new Uint32Array(values.length)
  for (let index = 0; index < values.length; index++) sorted[index] = index
  let steps = 0
  for (let width = 1; width < values.length; width *= 2) {
    for (let start = 0; start < values.length; start += 2 * width) {
      const middle = Math.min(start + width, values.length)
      const end = Math.min(middle + width, values.length)
      let [left, right] = [start, middle]
      for (let at = start; at < end; at++) {
        const takesRight =
          left === middle || (right < end && values[sorted[right]!]! > values[sorted[left]!]!)
        merged[at] = sorted[takesRight ? right++ : left++]!
        if (++steps % pieceSteps === 0) yield
      }
    }
    ;[sorted, merged] = [merged, sorted]
  }
  return sorted.subarray(0, count)
}

/** The outputs of a request, with classes in place of values where they were asked for. @throws ServingError */
export async function classified(
  request: Pick<InferRequest, 'outputs'>,
  outputs: readonly Tensor[],
  model: Pick<LoadedModel, 'labels' | 'config'>,
): Promise<readonly Tensor[]> {
  const asked = request.outputs.filter(({ classification }) => classification > 0)
  if (asked.length === 0) return outputs
  const classes = new Map(asked.map(({ name, classification }) => [name, classification]))
  const batched = (model.config.max_batch_size ?? 0) > 0
  const answer: Tensor[] = []
  for (const output of outputs) {
    const count = classes.get(output.name)
    if (count === undefined) {
      answer.push(output)
      continue
    }
    const work = classify(output, count, model.labels(output.name), batched)
    answer.push(output.data.byteLength > mostBytesAtOnce ? await inTurns(work) : atOnce(work))
  }
  return answer
}
