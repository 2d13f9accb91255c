import { type Datatype, onnxOfDatatype, type OnnxType } from './element-type.js'

/**
 * A tensor as it travels between client, scheduler and backend.
 *
 * `data` is little-endian and row-major, exactly as the binary extension of the protocol writes it: BOOL takes one byte, an element
 * of BYTES is a uint32 length and that many bytes. It is never written to, and it may be a view of a larger buffer at any offset.
 */
export type Tensor = Readonly<{
  name: string
  datatype: Datatype
  /** With the batch dimension, where the model has one. */
  shape: readonly number[]
  data: Uint8Array
  /**
   * The whole buffer under `data` belongs to this request alone, and whoever takes the tensor may move it to another thread,
   * after which it is empty here. Whoever keeps a tensor, or gives it to two takers, drops the mark. Never set on slices of
   * Node's pool.
   */
  movable?: true
  /** The elements of BYTES have been looked at: they are as many as the shape has, and fill the data. */
  checked?: true
}>

/** What a model takes or gives. -1 is any size; with `max_batch_size > 0` the first size is the batch, -1. */
export type TensorSpec = Readonly<{
  name: string
  datatype: Datatype
  shape: readonly number[]
  /** Inputs that a request may leave out. */
  optional?: boolean
}>

/** A tensor in the words of a model file. A dimension is a size, or the name the exporter gave to one that may vary. */
export type ModelTensor = Readonly<{ name: string; type: OnnxType; shape: readonly (number | string)[] }>

/** A tensor of a served model in the words of model files; free sizes are called `?`. */
export function modelTensorOf({ name, datatype, shape }: TensorSpec): ModelTensor {
  return { name, type: onnxOfDatatype(datatype), shape: shape.map((size) => (size === -1 ? '?' : size)) }
}

/** `float32 [1, 3, 640, 640]`, for people. */
export function describeTensor({ type, shape }: ModelTensor): string {
  return `${type} [${shape.join(', ')}]`
}

/** Elements of a tensor of that shape. */
export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1)
}

/** Bytes of a typed array, as the data of a tensor. Nothing is copied. */
export function dataOf(array: ArrayBufferView): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
}

export function float32Tensor(name: string, shape: readonly number[], values: Float32Array): Tensor {
  return { name, datatype: 'FP32', shape, data: dataOf(values) }
}
