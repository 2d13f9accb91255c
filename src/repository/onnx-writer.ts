import protobuf from 'protobufjs'
import { onnxNumberOf, type OnnxType } from '../tensors/element-type.js'
import { onnxProto } from './onnx-schema.js'

/** A tensor that enters or leaves a graph. A dimension is a size or a name. */
export type BorderTensor = Readonly<{ name: string; type: OnnxType; shape: readonly (number | string)[] }>

/** A constant of a graph. */
export type GraphConstant = Readonly<{
  name: string
  shape: readonly number[]
  data: Float32Array | BigInt64Array | Uint8Array | Int8Array
}>

/** An operator; its attributes are whole numbers or lists of them. */
export type GraphNode = Readonly<{
  op: string
  inputs: readonly string[]
  outputs: readonly string[]
  attributes?: Readonly<Record<string, number | readonly number[]>>
}>

/** A graph with all that it needs. */
export type WholeGraph = Readonly<{
  opset: number
  inputs: readonly BorderTensor[]
  nodes: readonly GraphNode[]
  constants: readonly GraphConstant[]
  outputs: readonly BorderTensor[]
}>

/** What is put behind a graph. Its names are new ones. */
export type GraphAddition = Readonly<{
  nodes: readonly GraphNode[]
  constants: readonly GraphConstant[]
  outputs: readonly BorderTensor[]
}>

const { root } = protobuf.parse(
  `${onnxProto}
message TensorProto { repeated int64 dims = 1; int32 data_type = 2; string name = 8; bytes raw_data = 9; }
message AttributeProto { string name = 1; int64 i = 3; repeated int64 ints = 8; int32 type = 20; }
message NodeProto {
  repeated string input = 1; repeated string output = 2; string name = 3; string op_type = 4; repeated AttributeProto attribute = 5;
}
message GraphProto {
  repeated NodeProto node = 1; string name = 2; repeated TensorProto initializer = 5; repeated ValueInfoProto input = 11;
  repeated ValueInfoProto output = 12;
}
message ModelProto { int64 ir_version = 1; GraphProto graph = 7; repeated OperatorSetIdProto opset_import = 8; }
`,
  { keepCase: true },
)
const valueInfoType = root.lookupType('onnx.ValueInfoProto')
const modelType = root.lookupType('onnx.ModelProto')
const nodeType = root.lookupType('onnx.NodeProto')
const tensorType = root.lookupType('onnx.TensorProto')

/** Of ONNX 1.8, which every runtime of use reads. */
const irVersion = 7

/** `AttributeProto.AttributeType` of a whole number, and of a list of them. */
const attributeTypes = { one: 2, list: 7 } as const

/** Bytes of a `ValueInfoProto`; a tensor of which nothing is known has its name alone, which ONNX Runtime completes. */
export function valueInfo(name: string, tensor?: BorderTensor): Uint8Array {
  return valueInfoType.encode(tensor === undefined ? { name } : valueInfoOf(tensor)).finish()
}

/**
 * A model with nodes behind its own, whose outputs it then has beside its own. Nothing of the model is read: a message that comes twice in
 * a protobuf file is one with the parts of both.
 *
 * @param model - bytes of an ONNX file with all its weights inside.
 * @see https://protobuf.dev/programming-guides/encoding/#last-one-wins
 */
export function withAddition(model: Uint8Array, { nodes, constants, outputs }: GraphAddition): Uint8Array {
  const graph = {
    node: nodes.map(nodeOf),
    initializer: constants.map(constantOf),
    output: outputs.map(valueInfoOf),
  }
  return Buffer.concat([model, modelType.encode({ graph }).finish()])
}

/** Bytes of an ONNX file. */
export function modelBytes({ opset, inputs, nodes, constants, outputs }: WholeGraph): Uint8Array {
  const graph = {
    name: 'graph',
    node: nodes.map(nodeOf),
    initializer: constants.map(constantOf),
    input: inputs.map(valueInfoOf),
    output: outputs.map(valueInfoOf),
  }
  return modelType
    .encode({ ir_version: irVersion, graph, opset_import: [{ domain: '', version: opset }] })
    .finish()
}

/** Bytes of a `NodeProto`, which is named after its first output. */
export function nodeBytes(node: GraphNode): Uint8Array {
  return nodeType.encode(nodeOf(node)).finish()
}

/** Bytes of a `TensorProto`. */
export function constantBytes(constant: GraphConstant): Uint8Array {
  return tensorType.encode(constantOf(constant)).finish()
}

function nodeOf({ op, inputs, outputs, attributes = {} }: GraphNode): object {
  return {
    input: inputs,
    output: outputs,
    name: outputs[0],
    op_type: op,
    attribute: Object.entries(attributes).map(([name, value]) =>
      typeof value === 'number'
        ? { name, i: value, type: attributeTypes.one }
        : { name, ints: value, type: attributeTypes.list },
    ),
  }
}

function constantOf({ name, shape, data }: GraphConstant): object {
  return {
    name,
    dims: shape,
    data_type: onnxNumberOf(typeOf(data)),
    raw_data: new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
  }
}

function typeOf(data: GraphConstant['data']): OnnxType {
  if (data instanceof Float32Array) return 'float32'
  if (data instanceof BigInt64Array) return 'int64'
  return data instanceof Uint8Array ? 'uint8' : 'int8'
}

function valueInfoOf({ name, type, shape }: BorderTensor): object {
  const dim = shape.map((size) => (typeof size === 'number' ? { dim_value: size } : { dim_param: size }))
  return { name, type: { tensor_type: { elem_type: onnxNumberOf(type), shape: { dim } } } }
}
