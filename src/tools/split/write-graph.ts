import protobuf from 'protobufjs'
import type { GraphParts, NodePart } from './graph-parts.js'

/** Bytes of a model with those nodes, the weights they need, and that border. */
export function writeGraph(
  parts: GraphParts,
  nodes: readonly NodePart[],
  inputs: readonly Uint8Array[],
  outputs: readonly Uint8Array[],
): Uint8Array {
  const needed = new Set(nodes.flatMap((node) => node.inputs))
  const graph = protobuf.Writer.create()
  const add = (field: number, value: Uint8Array) => graph.uint32((field << 3) | 2).bytes(value)
  for (const node of nodes) add(1, node.bytes)
  graph.uint32((2 << 3) | 2).string('part')
  for (const [name, weight] of parts.weights) if (needed.has(name)) add(5, weight.bytes)
  for (const input of inputs) add(11, input)
  for (const output of outputs) add(12, output)
  const model = graph.finish()
  const head = protobuf.Writer.create()
    .uint32((7 << 3) | 2)
    .uint32(model.byteLength)
    .finish()
  return Buffer.concat([...parts.modelFields, head, model])
}
