import { copyInTurns } from './copy-in-turns.js'
import type { Tensor } from './tensor.js'

/** Bytes of a typed array, as the data of a tensor. Nothing is copied. */
export function dataOf(array: ArrayBufferView): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
}

export function float32Tensor(name: string, shape: readonly number[], values: Float32Array): Tensor {
  return { name, datatype: 'FP32', shape, data: dataOf(values) }
}

/** The data of a tensor in a buffer that may be transferred: its own where the tensor is movable, else a copy. */
export async function transferable({
  data,
  movable,
}: Tensor): Promise<Readonly<{ buffer: ArrayBuffer; copiedBytes: number }>> {
  const { buffer, byteLength } = data
  if (movable === true && buffer instanceof ArrayBuffer && byteLength === buffer.byteLength)
    return { buffer, copiedBytes: 0 }
  return { buffer: (await copyInTurns(data)).buffer, copiedBytes: byteLength }
}
