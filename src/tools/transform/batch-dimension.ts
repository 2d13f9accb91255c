import { readOnnxFile } from '../../repository/onnx-file.js'
import { EditableGraph } from './editable-graph.js'
import { ModelTransformError } from './transform-error.js'
import { withInputs } from './whole-node.js'

/**
 * Makes the first dimension of all inputs and outputs free, or one size. Shapes that a model has for batch size 1 alone, in the
 * constants of its Reshape nodes, follow the batch then.
 *
 * @returns bytes of the model.
 * @throws ModelTransformError for a tensor without a first dimension, or one whose first dimension is no batch
 */
export function withBatch(path: string, batch: number | 'free'): Uint8Array {
  const { inputs, outputs } = readOnnxFile(path)
  const graph = new EditableGraph(path)
  const [first] = inputs
  const before = first?.shape[0]
  for (const tensor of [...inputs, ...outputs])
    if (tensor.shape.length === 0 || (typeof tensor.shape[0] === 'number' && tensor.shape[0] !== before))
      throw new ModelTransformError(
        `the batch dimension cannot be changed: "${tensor.name}" is [${tensor.shape.join(', ')}], and input "${first?.name ?? ''}" begins with ${before ?? 'nothing'}`,
        'Only a model whose inputs and outputs all begin with the batch can have another one. Export it again with a free batch.',
      )
  if (typeof before === 'number' && batch !== before)
    followBatch(
      graph,
      inputs.map(({ name }) => name),
      before,
    )
  const size = batch === 'free' ? 'batch' : batch
  for (const tensor of inputs) graph.setInput({ ...tensor, shape: [size, ...tensor.shape.slice(1)] })
  for (const tensor of outputs) graph.setOutput({ ...tensor, shape: [size, ...tensor.shape.slice(1)] })
  return graph.finished()
}

/** A Reshape that begins with the batch size copies it from what it reads. */
function followBatch(graph: EditableGraph, inputs: readonly string[], before: number): void {
  const computed = new Set(inputs)
  for (const node of graph.nodes) {
    if (!node.inputs.some((name) => computed.has(name))) continue
    for (const name of node.outputs) computed.add(name)
    if (node.op !== 'Reshape' || !computed.has(node.given[0] ?? '')) continue
    const shape = graph.numbers(node.given[1] ?? '')
    if (shape?.values[0] !== before || shape.type !== 'int64') continue
    const after = BigInt64Array.from(Array.from(shape.values, (size, at) => BigInt(at === 0 ? 0 : size)))
    const name = graph.addConstant('gantry_batch/shape', shape.shape, after)
    graph.replace(node, withInputs(node, [node.given[0] ?? '', name]))
  }
}
