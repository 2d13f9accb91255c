import { floatsOf } from '../tensors/elements.js'
import type { OnnxType } from '../tensors/element-type.js'

/** `real = (stored - zeroPoint) * scale`, as ONNX has it. */
export type Quantisation = Readonly<{ scale: number; zeroPoint: number }>

/**
 * Values of an output as floats.
 *
 * @param buffer - the tensor's data, little-endian. Borrowed: for float32 the result is a view of it.
 * @param quantised - for integers that stand for real numbers.
 * @throws TypeError for types that are no numbers.
 */
export function headValues(buffer: ArrayBuffer, type: OnnxType, quantised?: Quantisation): Float32Array {
  if (type === 'float32') return new Float32Array(buffer)
  const stored = integers(buffer, type)
  if (quantised === undefined) return Float32Array.from(stored, Number)
  const { scale, zeroPoint } = quantised
  return Float32Array.from(stored, (value) => (Number(value) - zeroPoint) * scale)
}

function integers(
  buffer: ArrayBuffer,
  type: OnnxType,
): Iterable<number | bigint> & { readonly length: number } {
  switch (type) {
    case 'uint8':
    case 'bool':
      return new Uint8Array(buffer)
    case 'int8':
      return new Int8Array(buffer)
    case 'uint16':
      return new Uint16Array(buffer)
    case 'int16':
      return new Int16Array(buffer)
    case 'int32':
      return new Int32Array(buffer)
    case 'uint32':
      return new Uint32Array(buffer)
    case 'int64':
      return new BigInt64Array(buffer)
    case 'uint64':
      return new BigUint64Array(buffer)
    case 'float64':
      return new Float64Array(buffer)
    case 'float16':
      return floatsOf(new Uint16Array(buffer))
    default:
      throw new TypeError(`outputs of type ${type} cannot be read as detections`)
  }
}
