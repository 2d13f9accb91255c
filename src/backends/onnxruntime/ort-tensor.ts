import ort from './onnxruntime.js'
import { arrayOf, datatypeOfOnnx, isArrayDatatype } from '../../tensors/element-type.js'
import { float16Bits } from '../../tensors/elements.js'
import { elementCount } from '../../tensors/tensor.js'

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

/**
 * A tensor of zeros, or of empty strings.
 *
 * @param memory - gives the buffer of its elements.
 * @throws TypeError for a type of which there are no arrays
 */
export function emptyTensor(
  type: ort.Tensor.Type,
  dims: readonly number[],
  memory = (bytes: number) => new ArrayBuffer(bytes),
): ort.Tensor {
  const length = elementCount(dims)
  if (type === 'string') return new ort.Tensor(type, new Array<string>(length).fill(''), dims)
  const datatype = datatypeOfOnnx(type)
  if (!isArrayDatatype(datatype)) throw new TypeError(`there are no arrays of type ${type}`)
  const kind = arrayOf(datatype)
  return ortTensor(type, new kind(memory(length * kind.BYTES_PER_ELEMENT), 0, length), dims)
}
