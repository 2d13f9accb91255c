import {
  valueInfo,
  type BorderTensor,
  constantBytes,
  type GraphAddition,
  type GraphConstant,
  type GraphNode,
} from '../../repository/onnx-writer.js'
import { readGraphParts, type GraphParts, type WeightPart } from '../split/graph-parts.js'
import { writeGraph } from '../split/write-graph.js'
import { constantNumbers, type ConstantNumbers } from './constant-numbers.js'
import { ModelTransformError } from './transform-error.js'
import { newNode, nodeName, type WholeNode, withInputs, wholeNode } from './whole-node.js'

const quantised =
  /^(QuantizeLinear|DequantizeLinear|DynamicQuantizeLinear|QLinear\w+|QGemm|ConvInteger|MatMulInteger\w*|DynamicQuantize\w+)$/

/** The graph of a model file while it is changed: nodes in an order in which they can run, constants, and the tensors at its border. */
export class EditableGraph {
  nodes: WholeNode[]
  readonly #parts: GraphParts
  readonly #weights: Map<string, WeightPart>
  readonly #inputs: Map<string, Uint8Array>
  readonly #outputs: Map<string, Uint8Array>

  /** @throws ModelInvalidError; ModelTransformError where weights lie in files beside the model */
  constructor(readonly path: string) {
    const parts = readGraphParts(path)
    for (const { name, location } of parts.weights.values())
      if (location !== undefined)
        throw new ModelTransformError(
          `weight "${name}" lies in a file beside the model: ${location}`,
          "Put all weights into the model file: python3 -c \"import onnx; onnx.save(onnx.load('model.onnx'), 'whole.onnx')\".",
        )
    this.#parts = parts
    this.#weights = new Map(parts.weights)
    this.#inputs = new Map(parts.inputs)
    this.#outputs = new Map(parts.outputs)
    this.nodes = parts.nodes.map(wholeNode)
  }

  get outputs(): readonly string[] {
    return [...this.#outputs.keys()]
  }

  /** The node that gives a tensor. */
  maker(tensor: string): WholeNode | undefined {
    return this.nodes.find(({ outputs }) => outputs.includes(tensor))
  }

  readers(tensor: string): readonly WholeNode[] {
    return this.nodes.filter(({ inputs }) => inputs.includes(tensor))
  }

  /** Numbers of a constant, whether it is a weight or what a Constant node gives. */
  numbers(tensor: string): ConstantNumbers | undefined {
    const weight = this.#weights.get(tensor)
    if (weight !== undefined) return constantNumbers(weight.bytes)
    const maker = this.maker(tensor)
    if (maker?.op === 'Identity') return this.numbers(maker.given[0] ?? '')
    const value = maker?.op === 'Constant' ? maker.attributes.get('value')?.tensor : undefined
    return value === undefined ? undefined : constantNumbers(value)
  }

  /** Adds a constant under a name that is not taken. @returns the name */
  addConstant(wanted: string, shape: readonly number[], data: GraphConstant['data']): string {
    let name = wanted
    for (let at = 1; this.#weights.has(name) || this.maker(name) !== undefined; at++) name = `${wanted}_${at}`
    const bytes = constantBytes({ name, shape, data })
    this.#weights.set(name, { name, dims: shape, dataBytes: data.byteLength, location: undefined, bytes })
    return name
  }

  /** Puts a changed node in its place. */
  replace(node: WholeNode, changed: WholeNode): void {
    this.nodes = this.nodes.map((each) => (each === node ? changed : each))
  }

  /** All that read `from` read `to`, but what subgraphs take from around them. */
  rename(from: string, to: string): void {
    this.nodes = this.nodes.map((node) =>
      node.given.includes(from)
        ? withInputs(
            node,
            node.given.map((name) => (name === from ? to : name)),
          )
        : node,
    )
  }

  /** Nodes before all others. */
  prepend(nodes: readonly GraphNode[]): void {
    this.nodes = [...nodes.map(newNode), ...this.nodes]
  }

  /** Nodes and constants behind all others, with outputs in place of those that there are. */
  finishWith({ nodes, constants, outputs }: GraphAddition): void {
    for (const constant of constants) this.addConstant(constant.name, constant.shape, constant.data)
    this.nodes = [...this.nodes, ...nodes.map(newNode)]
    this.#outputs.clear()
    for (const output of outputs) this.setOutput(output)
  }

  setInput(tensor: BorderTensor): void {
    this.#inputs.set(tensor.name, valueInfo(tensor.name, tensor))
  }

  setOutput(tensor: BorderTensor): void {
    this.#outputs.set(tensor.name, valueInfo(tensor.name, tensor))
  }

  /** @throws ModelTransformError naming the first node on integers, and the step that cannot be done behind it */
  refuseQuantised(step: string): void {
    const node = this.nodes.find(({ op }) => quantised.test(op))
    if (node !== undefined)
      throw new ModelTransformError(
        `${step} cannot be done: the model is quantised already, node "${nodeName(node)}" is a ${node.op}`,
        `Begin with the float32 model, and name ${step} before int8.`,
      )
  }

  /** Bytes of the model, without nodes and weights that nothing reads any more. */
  finished(): Uint8Array {
    const wanted = new Set(this.#outputs.keys())
    const kept: WholeNode[] = []
    for (const node of this.nodes.toReversed())
      if (node.outputs.some((name) => wanted.has(name))) {
        kept.unshift(node)
        for (const name of node.inputs) wanted.add(name)
      }
    return writeGraph(
      { ...this.#parts, weights: this.#weights },
      kept,
      [...this.#inputs.values()],
      [...this.#outputs.values()],
    )
  }
}
