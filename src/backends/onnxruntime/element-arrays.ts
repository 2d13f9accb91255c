import type ort from './onnxruntime.js'
import type { TensorType } from '../../tensors/tensor-type.js'
import type { Datatype } from '../../tensors/datatype.js'

type ElementType = {
  readonly datatype: Datatype
  readonly bytes: number
  view(buffer: ArrayBuffer, offset: number, length: number): ort.Tensor.DataType
}

/** Element types that ONNX Runtime's binding takes as typed arrays. It has none for BF16. */
const elementTypes: Readonly<Partial<Record<TensorType, ElementType>>> = {
  float32: { datatype: 'FP32', bytes: 4, view: (...at) => new Float32Array(...at) },
  float64: { datatype: 'FP64', bytes: 8, view: (...at) => new Float64Array(...at) },
  float16: { datatype: 'FP16', bytes: 2, view: (...at) => new Uint16Array(...at) },
  bool: { datatype: 'BOOL', bytes: 1, view: (...at) => new Uint8Array(...at) },
  uint8: { datatype: 'UINT8', bytes: 1, view: (...at) => new Uint8Array(...at) },
  int8: { datatype: 'INT8', bytes: 1, view: (...at) => new Int8Array(...at) },
  uint16: { datatype: 'UINT16', bytes: 2, view: (...at) => new Uint16Array(...at) },
  int16: { datatype: 'INT16', bytes: 2, view: (...at) => new Int16Array(...at) },
  uint32: { datatype: 'UINT32', bytes: 4, view: (...at) => new Uint32Array(...at) },
  int32: { datatype: 'INT32', bytes: 4, view: (...at) => new Int32Array(...at) },
  uint64: { datatype: 'UINT64', bytes: 8, view: (...at) => new BigUint64Array(...at) },
  int64: { datatype: 'INT64', bytes: 8, view: (...at) => new BigInt64Array(...at) },
}

/** Whether tensors of that type can be passed to ONNX Runtime from here. */
export function isSupported(type: TensorType): boolean {
  return type === 'string' || type in elementTypes
}

/** Datatype of the protocol for a supported type. */
export function datatypeOf(type: TensorType): Datatype {
  return type === 'string' ? 'BYTES' : (elementTypes[type]?.datatype ?? 'BYTES')
}

/** Whether bytes at that place can be read as elements without a copy. */
export function isAligned(type: TensorType, data: Uint8Array): boolean {
  return data.byteOffset % (elementTypes[type]?.bytes ?? 1) === 0
}

/** Aligned bytes as elements of a supported type other than `string`, over the same memory. */
export function elementsOf(type: TensorType, data: Uint8Array<ArrayBuffer>): ort.Tensor.DataType {
  const element = elementTypes[type]!
  return element.view(data.buffer, data.byteOffset, data.byteLength / element.bytes)
}
