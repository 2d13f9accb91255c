import protobuf from 'protobufjs'
import { type GraphNode, nodeBytes } from '../../repository/onnx-writer.js'
import { fieldsOf, type NodePart } from '../split/graph-parts.js'

/** An attribute that is a number, a list of whole numbers, a word or a tensor; of others the name alone. */
export type NodeAttribute = Readonly<{
  whole?: number
  wholes?: readonly number[]
  text?: string
  /** Bytes of a `TensorProto`. */
  tensor?: Uint8Array
}>

/** A node with its inputs at their places: an optional one that is absent is an empty name. */
export type WholeNode = NodePart &
  Readonly<{ given: readonly string[]; attributes: ReadonlyMap<string, NodeAttribute> }>

/** Name of a node for people: exporters leave some without. */
export function nodeName({ name, op, outputs }: NodePart): string {
  return name === '' ? `${op} of "${outputs[0] ?? ''}"` : name
}

export function wholeNode(part: NodePart): WholeNode {
  const given: string[] = []
  const attributes = new Map<string, NodeAttribute>()
  for (const { number, value } of fieldsOf(part.bytes)) {
    if (number === 1) given.push(textOf(value))
    else if (number === 5) addTo(attributes, value)
  }
  return { ...part, given, attributes }
}

/** A node of ours. */
export function newNode(node: GraphNode): WholeNode {
  const { op, inputs, outputs } = node
  const part = { name: outputs[0] ?? '', op, inputs, outputs, bytes: nodeBytes(node) }
  return wholeNode({ ...part, inputs: inputs.filter((name) => name !== '') })
}

/** The same node with other inputs; names inside of subgraphs stay. */
export function withInputs(node: WholeNode, given: readonly string[]): WholeNode {
  const before = new Set(node.given)
  const captured = node.inputs.filter((name) => !before.has(name))
  const writer = protobuf.Writer.create()
  for (const name of given) writer.uint32((1 << 3) | 2).string(name)
  const others = [...fieldsOf(node.bytes)].filter(({ number }) => number !== 1).map(({ whole }) => whole)
  return {
    ...node,
    given,
    inputs: [...new Set([...given.filter((name) => name !== ''), ...captured])],
    bytes: Buffer.concat([writer.finish(), ...others]),
  }
}

function addTo(attributes: Map<string, NodeAttribute>, bytes: Uint8Array): void {
  let name = ''
  const attribute: { -readonly [K in keyof NodeAttribute]: NodeAttribute[K] } = {}
  const wholes: number[] = []
  for (const { number, wireType, value, whole } of fieldsOf(bytes)) {
    if (number === 1) name = textOf(value)
    else if (number === 3) attribute.whole = wholesIn(whole.subarray(1))[0] ?? 0
    else if (number === 4) attribute.text = textOf(value)
    else if (number === 5) attribute.tensor = value
    else if (number === 8) wholes.push(...wholesIn(wireType === 2 ? value : whole.subarray(1)))
  }
  if (wholes.length > 0) attribute.wholes = wholes
  attributes.set(name, attribute)
}

function wholesIn(bytes: Uint8Array): number[] {
  const reader = protobuf.Reader.create(bytes)
  const values: number[] = []
  while (reader.pos < reader.len) values.push(Number(reader.int64()))
  return values
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}
