import protobuf from 'protobufjs'

/** The parts of the public ONNX schema that small models are written with. */
const onnxType = protobuf
  .parse(
    `
syntax = "proto3";
package onnx;
message ModelProto {
  int64 ir_version = 1; string producer_name = 2; GraphProto graph = 7;
  repeated OperatorSetIdProto opset_import = 8; repeated StringStringEntryProto metadata_props = 14;
}
message OperatorSetIdProto { string domain = 1; int64 version = 2; }
message StringStringEntryProto { string key = 1; string value = 2; }
message GraphProto {
  repeated NodeProto node = 1; string name = 2; repeated TensorProto initializer = 5;
  repeated ValueInfoProto input = 11; repeated ValueInfoProto output = 12;
}
message NodeProto {
  repeated string input = 1; repeated string output = 2; string name = 3; string op_type = 4;
  repeated AttributeProto attribute = 5; string domain = 7;
}
message AttributeProto {
  string name = 1; TensorProto t = 5; float f = 2; int64 i = 3; repeated float floats = 7; repeated int64 ints = 8; int32 type = 20;
}
message TensorProto {
  repeated int64 dims = 1; int32 data_type = 2; repeated int32 int32_data = 5; repeated bytes string_data = 6; string name = 8; bytes raw_data = 9;
  repeated StringStringEntryProto external_data = 13; int32 data_location = 14;
}
message ValueInfoProto { string name = 1; TypeProto type = 2; }
message TypeProto { Tensor tensor_type = 1; message Tensor { int32 elem_type = 1; TensorShapeProto shape = 2; } }
message TensorShapeProto {
  repeated Dimension dim = 1;
  message Dimension { oneof value { int64 dim_value = 1; string dim_param = 2; } }
}`,
    { keepCase: true },
  )
  .root.lookupType('onnx.ModelProto')

export const elementTypes = {
  float32: 1,
  uint8: 2,
  int8: 3,
  uint16: 4,
  int16: 5,
  int32: 6,
  int64: 7,
  string: 8,
  bool: 9,
  float16: 10,
  float64: 11,
  uint32: 12,
  uint64: 13,
  bfloat16: 16,
} as const
export type ElementType = keyof typeof elementTypes
export type TensorSpec = Readonly<{ name: string; type: ElementType; shape: readonly (number | string)[] }>

/** A constant of the graph. */
export type Constant = Readonly<{
  name: string
  shape: readonly number[]
  data: Float32Array | BigInt64Array | Uint8Array | Int8Array | Int32Array
  /** In place of data, which is then empty. */
  strings?: readonly Uint8Array[]
  /** File that has the data in place of the model; `data` then only tells the type. */
  location?: string
  /** Where in that file. */
  offset?: number
  /** How exporters write few elements. */
  asNumbers?: boolean
}>

export type Node = Readonly<{
  op: string
  domain?: 'com.microsoft'
  inputs: readonly string[]
  outputs: readonly string[]
  /** Whole numbers, alone or in lists. */
  attributes?: Readonly<Record<string, number | readonly number[]>>
  /** Of a Constant. */
  value?: Constant
}>

export type OnnxSpec = Readonly<{
  inputs: readonly TensorSpec[]
  outputs: readonly TensorSpec[]
  nodes: readonly Node[]
  constants?: readonly Constant[]
  metadata?: Readonly<Record<string, string>>
  /** Lists constants as inputs too, as exporters did before IR version 4. */
  constantsAsInputs?: boolean
  /** Of the standard operators; 17 without it. */
  opset?: number
}>

/** Bytes of an ONNX file. */
export function buildOnnx(spec: OnnxSpec): Uint8Array {
  const constants = spec.constants ?? []
  const constantInputs = spec.constantsAsInputs === true ? constants.map(constantSpec) : []
  return onnxType
    .encode({
      ir_version: 8,
      producer_name: 'gantry-tests',
      opset_import: [
        { domain: '', version: spec.opset ?? 17 },
        ...(spec.nodes.some(({ domain }) => domain !== undefined)
          ? [{ domain: 'com.microsoft', version: 1 }]
          : []),
      ],
      metadata_props: Object.entries(spec.metadata ?? {}).map(([key, value]) => ({ key, value })),
      graph: {
        name: 'graph',
        input: [...spec.inputs, ...constantInputs].map(valueInfo),
        output: spec.outputs.map(valueInfo),
        initializer: constants.map(tensorProto),
        node: spec.nodes.map((node, index) => ({
          name: `${node.op}_${index}`,
          op_type: node.op,
          ...(node.domain === undefined ? {} : { domain: node.domain }),
          input: node.inputs,
          output: node.outputs,
          attribute: [
            ...Object.entries(node.attributes ?? {}).map(([name, value]) =>
              typeof value === 'number' ? { name, i: value, type: 2 } : { name, ints: value, type: 7 },
            ),
            ...(node.value === undefined ? [] : [{ name: 'value', t: tensorProto(node.value), type: 4 }]),
          ],
        })),
      },
    })
    .finish()
}

function tensorProto(constant: Constant): object {
  return {
    name: constant.name,
    dims: constant.shape,
    data_type: elementTypes[constantSpec(constant).type],
    ...dataOf(constant),
  }
}

function dataOf({ data, strings, location, offset, asNumbers }: Constant): object {
  if (strings !== undefined) return { string_data: strings }
  if (location === undefined)
    return asNumbers === true ? { int32_data: Array.from(data, Number) } : { raw_data: bytesOf(data) }
  const entries = [
    { key: 'location', value: location },
    ...(offset === undefined
      ? []
      : [
          { key: 'offset', value: String(offset) },
          { key: 'length', value: String(data.byteLength) },
        ]),
  ]
  return { data_location: 1, external_data: entries }
}

function bytesOf(data: Constant['data']): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
}

function constantSpec({ name, shape, data, strings }: Constant): TensorSpec {
  if (strings !== undefined) return { name, type: 'string', shape }
  if (data instanceof Float32Array) return { name, type: 'float32', shape }
  if (data instanceof Uint8Array) return { name, type: 'uint8', shape }
  if (data instanceof Int8Array) return { name, type: 'int8', shape }
  return { name, type: data instanceof Int32Array ? 'int32' : 'int64', shape }
}

function valueInfo({ name, type, shape }: TensorSpec): object {
  const dim = shape.map((size) => (typeof size === 'number' ? { dim_value: size } : { dim_param: size }))
  return { name, type: { tensor_type: { elem_type: elementTypes[type], shape: { dim } } } }
}
