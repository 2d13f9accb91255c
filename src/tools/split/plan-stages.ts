import { ModelInvalidError } from '../../repository/errors.js'
import { chooseCuts } from './choose-cuts.js'
import type { GraphParts, NodePart } from './graph-parts.js'
import type { MeasuredTensor } from './measure-graph.js'
import { nodeWork } from './node-work.js'

/** One part of a model. */
export type StagePlan = Readonly<{
  nodes: readonly NodePart[]
  /** Tensors of the model or of earlier stages. */
  inputs: readonly string[]
  /** Tensors that later stages read, and outputs of the model. */
  outputs: readonly string[]
  /** Estimated multiplications and additions with batch size 1. */
  work: number
  /** Bytes that cross from this stage to later ones, with batch size 1. */
  crossingBytes: number
}>

/**
 * Cuts a graph into parts at the narrowest places that leave them balanced. Constants and what is computed from constants alone go
 * with every part that needs them.
 *
 * @param batched - every tensor that crosses must have a batch dimension.
 * @throws ModelInvalidError if there are not enough places to cut.
 */
export function planStages(
  parts: GraphParts,
  tensors: ReadonlyMap<string, MeasuredTensor>,
  stages: number,
  batched: boolean,
): readonly StagePlan[] {
  const constants = constantNodes(parts)
  const nodes = parts.nodes.filter((node) => !constants.has(node))
  const work = nodes.map((node) => nodeWork(node, tensors, parts.weights))
  const live = liveAfter(parts, nodes)
  const bytesOf = (name: string) => {
    const tensor = tensors.get(name)
    if (tensor === undefined) return parts.inputs.has(name) ? 0 : Infinity
    return batched && !tensor.batched ? Infinity : tensor.bytes
  }
  const crossing = live.slice(0, -1).map((names) => [...names].reduce((sum, name) => sum + bytesOf(name), 0))
  const cuts = chooseCuts({ work, crossing }, stages)
  if (cuts === undefined)
    throw new ModelInvalidError(
      `the model cannot be cut into ${stages} stages: it has ${crossing.filter(Number.isFinite).length} places for a cut`,
      'Ask for fewer stages.',
    )
  const ends = [...cuts, nodes.length - 1]
  return ends.map((end, stage) => {
    const first = stage === 0 ? 0 : ends[stage - 1]! + 1
    const own = nodes.slice(first, end + 1)
    const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0)
    return {
      ...borderOf(parts, constants, own, nodes.slice(end + 1)),
      work: sum(work.slice(first, end + 1)),
      crossingBytes: stage === ends.length - 1 ? 0 : (crossing[end] ?? 0),
    }
  })
}

/** Nodes whose every input is a weight or comes from such a node. */
function constantNodes({ nodes, weights }: GraphParts): ReadonlySet<NodePart> {
  const known = new Set(weights.keys())
  const constants = new Set<NodePart>()
  for (const node of nodes) {
    if (/^Random|^Bernoulli|^Multinomial/.test(node.op) || !node.inputs.every((name) => known.has(name)))
      continue
    constants.add(node)
    for (const output of node.outputs) known.add(output)
  }
  return constants
}

/** For each node, the tensors that are there once it has run and that later nodes read. */
function liveAfter({ inputs }: GraphParts, nodes: readonly NodePart[]): readonly ReadonlySet<string>[] {
  const given = new Set([...inputs.keys(), ...nodes.flatMap((node) => node.outputs)])
  const lastRead = new Map<string, number>()
  nodes.forEach((node, index) => {
    for (const name of node.inputs) if (given.has(name)) lastRead.set(name, index)
  })
  const live: Set<string>[] = []
  let current = new Set<string>(inputs.keys())
  nodes.forEach((node, index) => {
    current = new Set([...current, ...node.outputs].filter((name) => (lastRead.get(name) ?? -1) > index))
    live.push(current)
  })
  return live
}

function borderOf(
  parts: GraphParts,
  constants: ReadonlySet<NodePart>,
  own: readonly NodePart[],
  later: readonly NodePart[],
): Pick<StagePlan, 'nodes' | 'inputs' | 'outputs'> {
  const constantOf = new Map(
    [...constants].flatMap((node) => node.outputs.map((name) => [name, node] as const)),
  )
  const made = new Set(own.flatMap((node) => node.outputs))
  const wanted = new Set([...later.flatMap((node) => node.inputs), ...parts.outputs.keys()])
  const ownNodes = new Set(own)
  const needed = new Set<NodePart>()
  const inputs = new Set<string>()
  const visit = (name: string): void => {
    const constant = constantOf.get(name)
    if (constant !== undefined) {
      if (!needed.has(constant)) {
        needed.add(constant)
        for (const input of constant.inputs) visit(input)
      }
    } else if (!made.has(name) && !parts.weights.has(name)) inputs.add(name)
  }
  for (const node of own) for (const name of node.inputs) visit(name)
  return {
    // In the order of the file, which every node's inputs come before.
    nodes: parts.nodes.filter((node) => needed.has(node) || ownNodes.has(node)),
    inputs: [...inputs],
    outputs: [...made].filter((name) => wanted.has(name)),
  }
}
