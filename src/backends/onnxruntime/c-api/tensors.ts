import type ort from '../onnxruntime.js'
import { onnxNumberOf, type OnnxType, onnxTypeOf } from '../../../tensors/element-type.js'
import { elementCount } from '../../../tensors/tensor.js'
import { emptyTensor, ortTensor } from '../ort-tensor.js'
import type { OrtApi } from './ort-api.js'

/** A tensor without its elements. */
export type TensorForm = Readonly<{ type: ort.Tensor.Type; dims: readonly number[] }>

/** Dimensions as C takes them; its address is never 0. */
export function cDims(dims: readonly number[]): BigInt64Array {
  return dims.length === 0 ? new BigInt64Array(1) : BigInt64Array.from(dims, BigInt)
}

/** An `OrtValue` of an arena, which owns its elements. */
export function madeValue(api: OrtApi, allocator: number, { type, dims }: TensorForm): number {
  return api.made('CreateTensorAsOrtValue', allocator, cDims(dims), dims.length, numberOf(type))
}

/**
 * An `OrtValue` over the elements of a tensor, which must stay where they are until it is given back; strings are copied.
 *
 * @param info - where the elements lie.
 * @param allocator - for strings.
 */
export function valueOver(api: OrtApi, tensor: ort.Tensor, info: number, allocator: number): number {
  const { type, dims, data } = tensor
  if (type === 'string') return stringValue(api, data as readonly string[], dims, allocator)
  const elements = data as ArrayBufferView
  // An empty array has no address.
  const memory = elements.byteLength === 0 ? new Uint8Array(8) : elements
  return api.made(
    'CreateTensorWithDataAsOrtValue',
    info,
    memory,
    elements.byteLength,
    cDims(dims),
    dims.length,
    numberOf(type),
  )
}

function stringValue(
  api: OrtApi,
  strings: readonly string[],
  dims: readonly number[],
  allocator: number,
): number {
  const value = madeValue(api, allocator, { type: 'string', dims })
  try {
    if (strings.length > 0) api.call('FillStringTensor', value, strings, strings.length)
    return value
  } catch (error) {
    api.release('ReleaseValue', value)
    throw error
  }
}

/** An `OrtValue` in memory of the host as a tensor with elements of its own. */
export function tensorOf(api: OrtApi, value: number): ort.Tensor {
  const { type, dims } = formOf(api, value)
  if (type === 'string') return ortTensor(type, stringsOf(api, value, elementCount(dims)), dims)
  const tensor = emptyTensor(type, dims)
  api.copyOut(api.made('GetTensorMutableData', value), tensor.data as ArrayBufferView)
  return tensor
}

/** @throws Error for a value that is no tensor */
export function formOf(api: OrtApi, value: number): TensorForm {
  const info = api.made('GetTensorTypeAndShape', value)
  try {
    return shapeIn(api, info)
  } finally {
    api.release('ReleaseTensorTypeAndShapeInfo', info)
  }
}

/** @param info - an `OrtTensorTypeAndShapeInfo`. */
export function shapeIn(api: OrtApi, info: number): TensorForm {
  const type = new Int32Array(1)
  api.call('GetTensorElementType', info, type)
  const rank = api.made('GetDimensionsCount', info)
  const dims = new BigInt64Array(Math.max(1, rank))
  if (rank > 0) api.call('GetDimensions', info, dims, rank)
  const name = onnxTypeOf(type[0]!)
  // The binding knows neither.
  if (name === 'other' || name === 'bfloat16') throw new Error(`Unsupported data type: ${type[0]}`)
  return { type: name, dims: Array.from(dims.subarray(0, rank), Number) }
}

function stringsOf(api: OrtApi, value: number, count: number): string[] {
  if (count === 0) return []
  const bytes = api.made('GetStringTensorDataLength', value)
  const text = Buffer.alloc(Math.max(1, bytes))
  const begins = new BigUint64Array(count)
  api.call('GetStringTensorContent', value, text, bytes, begins, count)
  return Array.from(begins, (at, index) =>
    text.toString('utf8', Number(at), index + 1 < count ? Number(begins[index + 1]) : bytes),
  )
}

function numberOf(type: string): number {
  const number = onnxNumberOf(type as OnnxType)
  if (number === 0) throw new TypeError(`there are no tensors of type ${type}`)
  return number
}
