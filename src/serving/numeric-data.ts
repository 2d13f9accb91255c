import type { Tensor } from './tensor.js'

/** Bytes of a typed array, as the data of a tensor. Nothing is copied. */
export function dataOf(array: ArrayBufferView): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
}

export function float32Tensor(name: string, shape: readonly number[], values: Float32Array): Tensor {
  return { name, datatype: 'FP32', shape, data: dataOf(values) }
}

/** The data of a tensor in a buffer that may be transferred: its own where the tensor is movable, else a copy. */
export function transferable({
  data,
  movable,
}: Tensor): Readonly<{ buffer: ArrayBuffer; copiedBytes: number }> {
  const { buffer, byteOffset, byteLength } = data
  if (movable === true && buffer instanceof ArrayBuffer && byteLength === buffer.byteLength)
    return { buffer, copiedBytes: 0 }
  return { buffer: buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer, copiedBytes: byteLength }
}
