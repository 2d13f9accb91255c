import type { GraphConstant, GraphNode } from './onnx-writer.js'

/** From here on, ReduceMax has its axes as an input. */
const axesAsInputOpset = 18

/** Nodes and constants with names of their own, to be put into a graph. */
export class GraphNodes {
  readonly nodes: GraphNode[] = []
  readonly constants: GraphConstant[] = []

  /** @param prefix - their names begin so. */
  constructor(
    readonly opset: number,
    readonly prefix: string,
  ) {}

  /** @returns the name of what it gives. */
  node(op: string, inputs: readonly string[], attributes: GraphNode['attributes'] = {}): string {
    const output = `${this.prefix}/${this.nodes.length}_${op}`
    this.nodes.push({ op, inputs, outputs: [output], attributes })
    return output
  }

  constant(shape: readonly number[], data: GraphConstant['data']): string {
    const name = `${this.prefix}/constant_${this.constants.length}`
    this.constants.push({ name, shape, data })
    return name
  }

  whole(numbers: readonly number[]): string {
    return this.constant([numbers.length], BigInt64Array.from(numbers, BigInt))
  }

  slice(values: string, axis: number, from: number, to: number): string {
    return this.node('Slice', [values, this.whole([from]), this.whole([to]), this.whole([axis])])
  }

  max(values: string, axis: number): string {
    return this.opset >= axesAsInputOpset
      ? this.node('ReduceMax', [values, this.whole([axis])], { keepdims: 1 })
      : this.node('ReduceMax', [values], { axes: [axis], keepdims: 1 })
  }

  /** @returns the name of the places of the highest, in their order. */
  top(values: string, count: number, axis: number): string {
    const name = `${this.prefix}/${this.nodes.length}_TopK`
    const attributes = { axis, largest: 1, sorted: 1 }
    this.nodes.push({
      op: 'TopK',
      inputs: [values, this.whole([count])],
      outputs: [`${name}_values`, name],
      attributes,
    })
    return name
  }
}
