import ort from './onnxruntime.js'
import { float16Bits } from '../../tensors/float16.js'

/**
 * A tensor as ONNX Runtime's binding reads it, on every version of Node.
 *
 * Where Node has `Float16Array` (24 and newer), the library's class turns the data of a float16 tensor into one, in which its binding
 * (1.30) finds no bytes: "not enough space: expected 12, got 0". It reads the bits from a `Uint16Array` on all of them.
 *
 * @param data - little-endian; for float16 the bits, whatever the kind of array. Borrowed until the run ends.
 */
export function ortTensor(
  type: ort.Tensor.Type,
  data: ort.Tensor.DataType,
  dims: readonly number[],
): ort.Tensor {
  if (type !== 'float16') return new ort.Tensor(type, data, dims)
  const bits = float16Bits(data as ArrayBufferView)
  return Object.defineProperty(new ort.Tensor(type, bits, dims), 'data', { value: bits })
}
