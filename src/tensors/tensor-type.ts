/** Element types as a model configuration names them. */
export type DataType =
  | 'TYPE_INVALID'
  | 'TYPE_BOOL'
  | 'TYPE_UINT8'
  | 'TYPE_UINT16'
  | 'TYPE_UINT32'
  | 'TYPE_UINT64'
  | 'TYPE_INT8'
  | 'TYPE_INT16'
  | 'TYPE_INT32'
  | 'TYPE_INT64'
  | 'TYPE_FP16'
  | 'TYPE_FP32'
  | 'TYPE_FP64'
  | 'TYPE_STRING'
  | 'TYPE_BF16'

/** Element types by their number in ONNX's `TensorProto.DataType`. */
export const tensorTypes = [
  'other',
  'float32',
  'uint8',
  'int8',
  'uint16',
  'int16',
  'int32',
  'int64',
  'string',
  'bool',
  'float16',
  'float64',
  'uint32',
  'uint64',
] as const
export type TensorType = (typeof tensorTypes)[number] | 'bfloat16'

/** A tensor a model takes or gives. A dimension is a size, or the name the exporter gave to one that may vary. */
export type ModelTensor = Readonly<{ name: string; type: TensorType; shape: readonly (number | string)[] }>

const configTypes: Readonly<Record<TensorType, DataType>> = {
  other: 'TYPE_INVALID',
  float32: 'TYPE_FP32',
  uint8: 'TYPE_UINT8',
  int8: 'TYPE_INT8',
  uint16: 'TYPE_UINT16',
  int16: 'TYPE_INT16',
  int32: 'TYPE_INT32',
  int64: 'TYPE_INT64',
  string: 'TYPE_STRING',
  bool: 'TYPE_BOOL',
  float16: 'TYPE_FP16',
  float64: 'TYPE_FP64',
  uint32: 'TYPE_UINT32',
  uint64: 'TYPE_UINT64',
  bfloat16: 'TYPE_BF16',
}

/** The name an element type has in a `config.pbtxt`. */
export function configDataType(type: TensorType): DataType {
  return configTypes[type]
}

/** `float32 [1, 3, 640, 640]`, for people. */
export function describeTensor(tensor: ModelTensor): string {
  return `${tensor.type} [${tensor.shape.join(', ')}]`
}

/** Elements of a tensor of that shape. */
export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1)
}
