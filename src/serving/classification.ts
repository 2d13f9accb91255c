import { elementsOf, isNumberDatatype, packStrings } from './elements.js'
import type { InferRequest } from './infer.js'
import type { LoadedModel } from './loaded-model.js'
import { ServingError } from './serving-error.js'
import type { Tensor } from './tensor.js'

/** More elements than this in one item are not sorted for anybody. */
const mostElements = 1_000_000

/**
 * The best classes of every item, as BYTES `<value>:<index>[:<label>]`, best first; equal values keep the order of their index.
 *
 * @param classes - how many; all there are if there are fewer.
 * @param labels - by index; classes without one are given without.
 * @param batched - whether the first size is a batch: then the answer is `[batch, classes]`, else `[classes]`.
 * @throws ServingError `INVALID_ARG` for types that have no order
 */
export function classify(
  tensor: Tensor,
  classes: number,
  labels: readonly string[],
  batched: boolean,
): Tensor {
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
  const texts: Uint8Array[] = []
  for (let item = 0; item < items; item++) {
    const best = bestIndexes(values.subarray(item * size, (item + 1) * size), count)
    for (const index of best) {
      const value = values[item * size + index] ?? 0
      const label = labels[index]
      const shown = isFloat ? Number(value).toFixed(6) : String(value)
      texts.push(Buffer.from(`${shown}:${index}${label ? `:${label}` : ''}`))
    }
  }
  return {
    name: tensor.name,
    datatype: 'BYTES',
    shape: batched && shape.length > 0 ? [items, count] : [count],
    data: packStrings(texts),
  }
}

function bestIndexes(values: ArrayLike<number | bigint>, count: number): number[] {
  const indexes = Array.from({ length: values.length }, (_, index) => index)
  indexes.sort((a, b) => {
    const [left, right] = [values[a] ?? 0, values[b] ?? 0]
    return left > right ? -1 : left < right ? 1 : a - b
  })
  return indexes.slice(0, count)
}

/** The outputs of a request, with classes in place of values where they were asked for. @throws ServingError */
export function classified(
  request: Pick<InferRequest, 'outputs'>,
  outputs: readonly Tensor[],
  model: Pick<LoadedModel, 'labels' | 'config'>,
): readonly Tensor[] {
  const asked = request.outputs.filter(({ classification }) => classification > 0)
  if (asked.length === 0) return outputs
  const classes = new Map(asked.map(({ name, classification }) => [name, classification]))
  const batched = (model.config.max_batch_size ?? 0) > 0
  return outputs.map((output) => {
    const count = classes.get(output.name)
    return count === undefined ? output : classify(output, count, model.labels(output.name), batched)
  })
}
