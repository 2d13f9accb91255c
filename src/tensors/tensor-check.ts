import { type Datatype, elementBytes } from './element-type.js'
import { uint32At } from './elements.js'
import type { Tensor } from './tensor.js'
import { ServingError } from './serving-error.js'

/** How the server's messages about a request begin, so that a client finds it among its own. */
export function idPrefix(id: string): string {
  return `[request id: ${id === '' ? '<id_unknown>' : id}] `
}

/**
 * Elements of a shape; 1 for a scalar.
 *
 * @throws ServingError `INVALID_ARG` for sizes that are negative or no safe integers, and for products that are none
 */
export function checkedCount(input: string, shape: readonly number[]): number {
  let count = 1
  for (const size of shape) {
    if (!Number.isSafeInteger(size) || size < 0)
      throw invalidShape(input, shape, 'contains one or more invalid dimensions')
    count *= size
  }
  if (shape.includes(0)) return 0
  if (!Number.isSafeInteger(count))
    throw invalidShape(
      input,
      shape,
      `causes total element count to exceed maximum size of ${Number.MAX_SAFE_INTEGER}`,
    )
  return count
}

/**
 * Bytes of `count` elements; not for BYTES.
 *
 * @throws ServingError `INVALID_ARG` when that is more than a safe integer
 */
export function byteCount(input: string, datatype: Datatype, count: number): number {
  const bytes = count * elementBytes(datatype)
  if (Number.isSafeInteger(bytes)) return bytes
  throw new ServingError(
    'INVALID_ARG',
    `byte size overflow for input '${input}': element count (${count}) * data type size ` +
      `(${elementBytes(datatype)}) exceeds maximum allowed size (${Number.MAX_SAFE_INTEGER})`,
  )
}

/** The tensor, with the mark that its elements of BYTES have been looked at. @throws ServingError as {@link checkTensor} */
export function checkedTensor(tensor: Tensor, model: string, requestId: string): Tensor {
  checkTensor(tensor, model, requestId)
  return tensor.datatype === 'BYTES' ? { ...tensor, checked: true } : tensor
}

/**
 * Whether data and shape agree: the bytes of a fixed-size type, the elements of BYTES.
 *
 * @throws ServingError `INVALID_ARG` in the words of Triton
 */
export function checkTensor(tensor: Tensor, model: string, requestId: string): void {
  const count = checkedCount(tensor.name, tensor.shape)
  if (tensor.datatype === 'BYTES') return checkStrings(tensor, count, model, requestId)
  const expected = byteCount(tensor.name, tensor.datatype, count)
  if (tensor.data.byteLength === expected) return
  throw new ServingError(
    'INVALID_ARG',
    `${idPrefix(requestId)}input byte size mismatch for input '${tensor.name}' for model '${model}'. ` +
      `Expected ${expected}, got ${tensor.data.byteLength}`,
  )
}

/** Walks the lengths. The data must end exactly where the last element ends. */
function checkStrings(tensor: Tensor, count: number, model: string, requestId: string): void {
  const { data, name } = tensor
  const place = `for inference input '${name}' for model '${model}'`
  let found = 0
  let at = 0
  while (at < data.byteLength) {
    const left = data.byteLength - at
    if (left < 4)
      throw wrong(
        requestId,
        `incomplete string length indicator ${place}, expecting 4 bytes but only ${left} bytes available`,
      )
    const length = uint32At(data, at)
    if (length > left - 4)
      throw wrong(
        requestId,
        `incomplete string data ${place}, expecting string of length ${length} but only ${left - 4} bytes available`,
      )
    at += 4 + length
    found++
    if (found > count)
      throw wrong(requestId, `unexpected number of string elements ${found} ${place}, expecting ${count}`)
  }
  if (found !== count) throw wrong(requestId, `expected ${count} string elements ${place}, got ${found}`)
}

function wrong(requestId: string, message: string): ServingError {
  return new ServingError('INVALID_ARG', idPrefix(requestId) + message)
}

function invalidShape(input: string, shape: readonly number[], problem: string): ServingError {
  return new ServingError(
    'INVALID_ARG',
    `invalid shape for input '${input}': shape [${shape.join(',')}] ${problem}`,
  )
}
