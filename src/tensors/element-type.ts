/**
 * What ONNX, a model configuration and the KServe v2 protocol call each element type, and how its elements lie in memory: those of FP16
 * as their bits. BF16 and BYTES have no array of their own.
 */
const elementTypes = [
  { number: 9, onnx: 'bool', config: 'TYPE_BOOL', kserve: 'BOOL', bytes: 1, array: Uint8Array },
  { number: 2, onnx: 'uint8', config: 'TYPE_UINT8', kserve: 'UINT8', bytes: 1, array: Uint8Array },
  { number: 4, onnx: 'uint16', config: 'TYPE_UINT16', kserve: 'UINT16', bytes: 2, array: Uint16Array },
  { number: 12, onnx: 'uint32', config: 'TYPE_UINT32', kserve: 'UINT32', bytes: 4, array: Uint32Array },
  { number: 13, onnx: 'uint64', config: 'TYPE_UINT64', kserve: 'UINT64', bytes: 8, array: BigUint64Array },
  { number: 3, onnx: 'int8', config: 'TYPE_INT8', kserve: 'INT8', bytes: 1, array: Int8Array },
  { number: 5, onnx: 'int16', config: 'TYPE_INT16', kserve: 'INT16', bytes: 2, array: Int16Array },
  { number: 6, onnx: 'int32', config: 'TYPE_INT32', kserve: 'INT32', bytes: 4, array: Int32Array },
  { number: 7, onnx: 'int64', config: 'TYPE_INT64', kserve: 'INT64', bytes: 8, array: BigInt64Array },
  { number: 10, onnx: 'float16', config: 'TYPE_FP16', kserve: 'FP16', bytes: 2, array: Uint16Array },
  { number: 1, onnx: 'float32', config: 'TYPE_FP32', kserve: 'FP32', bytes: 4, array: Float32Array },
  { number: 11, onnx: 'float64', config: 'TYPE_FP64', kserve: 'FP64', bytes: 8, array: Float64Array },
  { number: 16, onnx: 'bfloat16', config: 'TYPE_BF16', kserve: 'BF16', bytes: 2, array: undefined },
  { number: 8, onnx: 'string', config: 'TYPE_STRING', kserve: 'BYTES', bytes: 0, array: undefined },
] as const
type ElementType = (typeof elementTypes)[number]

/** An element type in the word of the KServe v2 protocol. */
export type Datatype = ElementType['kserve']
/** In the word of a model configuration. */
export type ConfigType = ElementType['config'] | 'TYPE_INVALID'
/** In the word of ONNX and its runtime; `other` is one that nothing else here has a word for. */
export type OnnxType = ElementType['onnx'] | 'other'
/** Types of which an array can be made. */
export type ArrayDatatype = Exclude<Datatype, 'BF16' | 'BYTES'>
/** Types whose elements are numbers of JavaScript. FP16 and BF16 travel as bytes only. */
export type NumberDatatype = Exclude<ArrayDatatype, 'FP16'>

export const datatypes: readonly Datatype[] = elementTypes.map(({ kserve }) => kserve)

const byDatatype = new Map<string, ElementType>(elementTypes.map((type) => [type.kserve, type]))
const byConfig = new Map<string, ElementType>(elementTypes.map((type) => [type.config, type]))
const byOnnx = new Map<string, ElementType>(elementTypes.map((type) => [type.onnx, type]))
const byOnnxNumber = new Map<number, ElementType>(elementTypes.map((type) => [type.number, type]))

/** Bytes of one element; 0 for BYTES, whose elements have lengths of their own. */
export function elementBytes(datatype: Datatype): number {
  return typeNamed(datatype).bytes
}

/** `TYPE_FP32` -> `FP32`, `TYPE_STRING` -> `BYTES`; `undefined` for `TYPE_INVALID` and names that are none. */
export function datatypeOfConfig(name: string): Datatype | undefined {
  return byConfig.get(name)?.kserve
}

/** `FP32` -> `TYPE_FP32`, `BYTES` -> `TYPE_STRING`. */
export function configOfDatatype(datatype: Datatype): ConfigType {
  return typeNamed(datatype).config
}

/** `float32` -> `TYPE_FP32`; `TYPE_INVALID` for `other`. */
export function configOfOnnx(type: OnnxType): ConfigType {
  return byOnnx.get(type)?.config ?? 'TYPE_INVALID'
}

/** `float32` -> `FP32`, `string` -> `BYTES`; `undefined` for names that are none. */
export function datatypeOfOnnx(name: string): Datatype | undefined {
  return byOnnx.get(name)?.kserve
}

/** `FP32` -> `float32`, `BYTES` -> `string`. */
export function onnxOfDatatype(datatype: Datatype): OnnxType {
  return typeNamed(datatype).onnx
}

/** The type with that number in ONNX's `TensorProto.DataType`. */
export function onnxTypeOf(number: number): OnnxType {
  return byOnnxNumber.get(number)?.onnx ?? 'other'
}

/** Its number in ONNX's `TensorProto.DataType`; 0 for `other`. */
export function onnxNumberOf(type: OnnxType): number {
  return byOnnx.get(type)?.number ?? 0
}

export function isArrayDatatype(datatype: Datatype | undefined): datatype is ArrayDatatype {
  return datatype !== undefined && typeNamed(datatype).array !== undefined
}

export function isNumberDatatype(datatype: Datatype): datatype is NumberDatatype {
  return datatype !== 'FP16' && isArrayDatatype(datatype)
}

type ArrayType = Extract<ElementType, Readonly<{ kserve: ArrayDatatype }>>['array']

/** The class of arrays of such elements. */
export function arrayOf(datatype: ArrayDatatype): ArrayType {
  return typeNamed(datatype).array as ArrayType
}

function typeNamed(datatype: Datatype): ElementType {
  return byDatatype.get(datatype)!
}
