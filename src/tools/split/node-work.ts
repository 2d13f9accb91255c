import type { GraphParts, NodePart } from './graph-parts.js'
import type { MeasuredTensor } from './measure-graph.js'

/** Multiplications and additions of a node with batch size 1, estimated; nodes that only move or map elements count each once. */
export function nodeWork(
  node: NodePart,
  tensors: ReadonlyMap<string, MeasuredTensor>,
  weights: GraphParts['weights'],
): number {
  const given = node.outputs.reduce((sum, name) => sum + (tensors.get(name)?.elements ?? 0), 0)
  if (/Conv/.test(node.op)) {
    const kernel = weightOf(node, weights, 4) ?? weightOf(node, weights, 3)
    return kernel === undefined ? given : given * (kernel.reduce((a, b) => a * b, 1) / (kernel[0] ?? 1))
  }
  if (/MatMul|Gemm/.test(node.op)) return given * innerSize(node, tensors, weights)
  return given
}

/** Dims of the first weight of that rank. */
function weightOf(
  node: NodePart,
  weights: GraphParts['weights'],
  rank: number,
): readonly number[] | undefined {
  for (const name of node.inputs) {
    const dims = weights.get(name)?.dims
    if (dims?.length === rank) return dims
  }
  return undefined
}

/** Elements that are summed for each one of the product. */
function innerSize(
  node: NodePart,
  tensors: ReadonlyMap<string, MeasuredTensor>,
  weights: GraphParts['weights'],
): number {
  const [first = ''] = node.inputs
  const last =
    tensors.get(first)?.dims.at(-1) ?? weights.get(first)?.dims.at(-1) ?? weightOf(node, weights, 2)?.[0]
  return last ?? 1
}
