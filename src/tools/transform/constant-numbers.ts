import protobuf from 'protobufjs'
import { elementsOf, floatsOf } from '../../tensors/elements.js'
import { type OnnxType, onnxTypeOf } from '../../tensors/element-type.js'

/** What a constant of a graph holds: float32 and float16 as floats, int64 and int32 as whole numbers. */
export type ConstantNumbers = Readonly<{
  type: OnnxType
  shape: readonly number[]
  values: Float32Array | readonly number[]
}>

const tensorType = protobuf
  .parse(
    `syntax = "proto3";
message TensorProto {
  repeated int64 dims = 1; int32 data_type = 2; repeated float float_data = 4; repeated int32 int32_data = 5;
  repeated int64 int64_data = 7; bytes raw_data = 9;
}`,
    { keepCase: true },
  )
  .root.lookupType('TensorProto')

type Read = Readonly<{
  dims: readonly number[]
  data_type: number
  float_data: readonly number[]
  int32_data: readonly number[]
  int64_data: readonly number[]
  raw_data: Uint8Array
}>

/**
 * Reads a constant with its data inside.
 *
 * @param bytes - a `TensorProto`.
 * @returns `undefined` for types other than float32, float16, int64 and int32.
 */
export function constantNumbers(bytes: Uint8Array): ConstantNumbers | undefined {
  const read = tensorType.toObject(tensorType.decode(bytes), {
    longs: Number,
    defaults: true,
    arrays: true,
  }) as Read
  const type = onnxTypeOf(read.data_type)
  const values = valuesOf(type, read)
  return values === undefined ? undefined : { type, shape: read.dims, values }
}

function valuesOf(type: OnnxType, read: Read): ConstantNumbers['values'] | undefined {
  const { raw_data: raw } = read
  switch (type) {
    case 'float32':
      return raw.length > 0 ? (elementsOf('FP32', raw) as Float32Array) : Float32Array.from(read.float_data)
    case 'float16':
      return floatsOf(
        raw.length > 0 ? (elementsOf('FP16', raw) as Uint16Array) : Uint16Array.from(read.int32_data),
      )
    case 'int64':
      return raw.length > 0 ? Array.from(elementsOf('INT64', raw) as BigInt64Array, Number) : read.int64_data
    case 'int32':
      return raw.length > 0 ? Array.from(elementsOf('INT32', raw) as Int32Array) : read.int32_data
    default:
      return undefined
  }
}
