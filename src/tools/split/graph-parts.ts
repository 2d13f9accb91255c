import { readFileSync } from 'node:fs'
import protobuf from 'protobufjs'
import { ModelInvalidError } from '../../repository/errors.js'

/** A node with what of it matters for cutting; `bytes` are the node as the file has it. */
export type NodePart = Readonly<{
  name: string
  op: string
  /** Those of its subgraphs that come from outside of them included. */
  inputs: readonly string[]
  outputs: readonly string[]
  bytes: Uint8Array
}>

/** A weight. `location` names the file beside the model that holds its data, where that is not in the model itself. */
export type WeightPart = Readonly<{
  name: string
  dims: readonly number[]
  dataBytes: number
  location: string | undefined
  bytes: Uint8Array
}>

/** An ONNX model in parts that are written back as they were read: nothing of it is decoded that need not be. */
export type GraphParts = Readonly<{
  /** Fields of the model other than its graph, with their tags. */
  modelFields: readonly Uint8Array[]
  nodes: readonly NodePart[]
  weights: ReadonlyMap<string, WeightPart>
  /** `ValueInfoProto` of inputs and outputs, by name; weights that are listed as inputs are left out. */
  inputs: ReadonlyMap<string, Uint8Array>
  outputs: ReadonlyMap<string, Uint8Array>
}>

const lengthDelimited = 2

/** Fields of a message, in their order. */
export function* fieldsOf(
  bytes: Uint8Array,
): Generator<Readonly<{ number: number; wireType: number; value: Uint8Array; whole: Uint8Array }>> {
  const reader = protobuf.Reader.create(bytes)
  while (reader.pos < reader.len) {
    const start = reader.pos
    const tag = reader.uint32()
    const wireType = tag & 7
    const value = wireType === lengthDelimited ? reader.bytes() : bytes.subarray(0, 0)
    if (wireType !== lengthDelimited) reader.skipType(wireType)
    yield { number: tag >>> 3, wireType, value, whole: bytes.subarray(start, reader.pos) }
  }
}

/** @throws ModelInvalidError `GANTRY_MODEL_INVALID` */
export function readGraphParts(path: string): GraphParts {
  try {
    return partsOf(readFileSync(path))
  } catch (error) {
    throw new ModelInvalidError(
      `${path} cannot be cut: ${error instanceof Error ? error.message : String(error)}`,
      'Check the file with `gantry models inspect`.',
      error,
    )
  }
}

function partsOf(bytes: Uint8Array): GraphParts {
  const modelFields: Uint8Array[] = []
  let graph: Uint8Array | undefined
  for (const { number, wireType, value, whole } of fieldsOf(bytes)) {
    if (number === 7 && wireType === lengthDelimited) graph = value
    else modelFields.push(whole)
  }
  if (graph === undefined) throw new Error('it has no graph')
  const nodes: NodePart[] = []
  const weights = new Map<string, WeightPart>()
  const inputs = new Map<string, Uint8Array>()
  const outputs = new Map<string, Uint8Array>()
  for (const { number, value } of fieldsOf(graph)) {
    if (number === 1) nodes.push(nodePart(value))
    else if (number === 5) addTo(weights, weightPart(value))
    else if (number === 11) inputs.set(nameIn(value, 1), value)
    else if (number === 12) outputs.set(nameIn(value, 1), value)
    else if (number === 15) throw new Error('it has sparse weights')
  }
  for (const name of weights.keys()) inputs.delete(name)
  return { modelFields, nodes, weights, inputs, outputs }
}

function addTo(weights: Map<string, WeightPart>, weight: WeightPart): void {
  weights.set(weight.name, weight)
}

function nodePart(bytes: Uint8Array): NodePart {
  const inputs: string[] = []
  const outputs: string[] = []
  let name = ''
  let op = ''
  for (const { number, value } of fieldsOf(bytes)) {
    if (number === 1) inputs.push(text(value))
    else if (number === 2) outputs.push(text(value))
    else if (number === 3) name = text(value)
    else if (number === 4) op = text(value)
    else if (number === 5) inputs.push(...capturedBy(value))
  }
  const named = (names: readonly string[]) => [...new Set(names.filter((each) => each !== ''))]
  return { name, op, inputs: named(inputs), outputs: named(outputs), bytes }
}

/** Names that the subgraphs of an attribute take from around them. */
function capturedBy(attribute: Uint8Array): string[] {
  const captured: string[] = []
  for (const { number, wireType, value } of fieldsOf(attribute))
    if ((number === 6 || number === 11) && wireType === lengthDelimited) captured.push(...outerNames(value))
  return captured
}

function outerNames(graph: Uint8Array): string[] {
  const known = new Set<string>()
  const read: string[] = []
  for (const { number, value } of fieldsOf(graph)) {
    if (number === 1) {
      const node = nodePart(value)
      read.push(...node.inputs)
      for (const output of node.outputs) known.add(output)
    } else if (number === 5) known.add(nameIn(value, 8))
    else if (number === 11) known.add(nameIn(value, 1))
    else if (number === 12) read.push(nameIn(value, 1))
  }
  return read.filter((name) => !known.has(name))
}

function weightPart(bytes: Uint8Array): WeightPart {
  const dims: number[] = []
  let name = ''
  let dataBytes = 0
  let location: string | undefined
  for (const { number, wireType, value, whole } of fieldsOf(bytes)) {
    if (number === 1) dims.push(...varints(wireType === lengthDelimited ? value : whole.subarray(1)))
    else if (number === 8) name = text(value)
    else if (number === 13) {
      const entry = [...fieldsOf(value)].map((field) => text(field.value))
      if (entry[0] === 'location') location = entry[1]
      else if (entry[0] === 'length') dataBytes += Number(entry[1])
    } else if (wireType === lengthDelimited) dataBytes += value.byteLength
  }
  return { name, dims, dataBytes, location, bytes }
}

function varints(bytes: Uint8Array): number[] {
  const reader = protobuf.Reader.create(bytes)
  const values: number[] = []
  while (reader.pos < reader.len) values.push(Number(reader.int64()))
  return values
}

function nameIn(message: Uint8Array, field: number): string {
  for (const { number, value } of fieldsOf(message)) if (number === field) return text(value)
  return ''
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}
