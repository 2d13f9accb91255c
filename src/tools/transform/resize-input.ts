import ort from '../../backends/onnxruntime/onnxruntime.js'
import { emptyTensor } from '../../backends/onnxruntime/ort-tensor.js'
import { sizeText } from '../../detector/input-size.js'
import { inputShape, isInterleaved, type InputPlan } from '../../detector/input-tensor.js'
import { knownStrides } from '../../detector/heads/grid.js'
import { readOnnxFile } from '../../repository/onnx-file.js'
import type { ModelTensor } from '../../tensors/tensor.js'
import type { SizePx } from '../../vision/letterbox.js'
import type { ConstantNumbers } from './constant-numbers.js'
import { EditableGraph } from './editable-graph.js'
import { ModelTransformError } from './transform-error.js'
import { withInputs } from './whole-node.js'

/** Sides of the second picture that a model of free size is run with: others, and as easily divided. */
const otherSize: SizePx = { widthPx: 512, heightPx: 384 }

/**
 * Gives a model another size of picture, or leaves it open. Constants that are a grid of the size it was exported for, as exporters of YOLO
 * models write them, become those of the new one; of an open size they cannot be constants.
 *
 * @returns bytes of the model, which has run at that size.
 * @throws ModelTransformError where it does not run so, naming the node; where a side is no multiple of the coarsest cell; where grids are
 *   constants and the size is to be free
 */
export async function resizeInput(
  path: string,
  plan: InputPlan,
  tensor: ModelTensor,
  size: SizePx | 'free',
): Promise<Uint8Array> {
  const grids = gridsOf(new EditableGraph(path), plan.size)
  const whole = grids.find(({ isCount }) => !isCount)
  if (whole !== undefined && size === 'free')
    throw new ModelTransformError(
      `the size cannot be free: constant "${whole.name}" is the grid of ${sizeText(plan.size)}`,
      'Give one size, such as size=640x384, or export the model with dynamic height and width.',
    )
  if (whole === undefined) {
    const plain = resized(path, plan, tensor, size, [])
    const seen = await outputsAt(plain, path, plan, tensor, size)
    if (Array.isArray(seen)) return settled(plain, seen)
    if (grids.length === 0 || size === 'free') throw doesNotRun(seen as string, size)
  }
  const changed = resized(path, plan, tensor, size, grids)
  const seen = await outputsAt(changed, path, plan, tensor, size)
  if (Array.isArray(seen)) return settled(changed, seen)
  throw doesNotRun(seen as string, size)
}

function doesNotRun(reason: string, size: SizePx | 'free'): ModelTransformError {
  return new ModelTransformError(
    `the model does not run with ${size === 'free' ? 'pictures of any size' : `pictures of ${sizeText(size)}`}: ${reason}`,
    'Something in the graph is made for one size. Export the model for that size, or with dynamic height and width.',
  )
}

/** With sizes of outputs that nobody knows yet. */
function resized(
  path: string,
  plan: InputPlan,
  tensor: ModelTensor,
  size: SizePx | 'free',
  grids: readonly Grid[],
): EditableGraph {
  const graph = new EditableGraph(path)
  const heightAt = isInterleaved(plan.layout) ? 1 : 2
  const sides = size === 'free' ? ['height', 'width'] : [size.heightPx, size.widthPx]
  graph.setInput({
    ...tensor,
    shape: [...tensor.shape.slice(0, heightAt), ...sides, ...tensor.shape.slice(heightAt + 2)],
  })
  for (const output of readOnnxFile(path).outputs)
    graph.setOutput({
      ...output,
      shape: output.shape.map((each, axis) => (axis === 0 ? each : `${output.name}_${axis}`)),
    })
  if (size !== 'free') for (const grid of grids) regrid(graph, grid, plan.size, size)
  return graph
}

/** Outputs with the sizes that runs gave them; why it does not run otherwise. */
async function outputsAt(
  graph: EditableGraph,
  path: string,
  plan: InputPlan,
  tensor: ModelTensor,
  size: SizePx | 'free',
): Promise<readonly ModelTensor[] | string> {
  const sizes = size === 'free' ? [plan.size, otherSize] : [size]
  try {
    const session = await ort.InferenceSession.create(graph.finished(), { logSeverityLevel: 4 })
    try {
      const runs: ort.InferenceSession.OnnxValueMapType[] = []
      for (const each of sizes) {
        const dims = inputShape(
          { layout: plan.layout, size: each },
          typeof tensor.shape[0] === 'number' ? tensor.shape[0] : 1,
        )
        runs.push(await session.run({ [plan.name]: emptyTensor(tensor.type as ort.Tensor.Type, dims) }))
      }
      return readOnnxFile(path).outputs.map((output) => ({
        ...output,
        shape: output.shape.map((each, axis) => {
          const [first, second = first] = runs.map((run) => run[output.name]?.dims[axis])
          return axis === 0
            ? each
            : first === second && first !== undefined
              ? first
              : `${output.name}_${axis}`
        }),
      }))
    } finally {
      await session.release()
    }
  } catch (error) {
    return (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? ''
  }
}

function settled(graph: EditableGraph, outputs: readonly ModelTensor[]): Uint8Array {
  for (const output of outputs) graph.setOutput(output)
  return graph.finished()
}

function cellsOf({ widthPx, heightPx }: SizePx, strides: readonly number[]): readonly number[] {
  return strides.map((stride) => Math.floor(widthPx / stride) * Math.floor(heightPx / stride))
}

function total(size: SizePx, strides: readonly number[]): number {
  return cellsOf(size, strides).reduce((sum, cells) => sum + cells, 0)
}

/** A constant that goes with the size: a value for each cell, or a list in which cells are counted. */
type Grid = Readonly<{
  name: string
  numbers: ConstantNumbers
  strides: readonly number[]
  isCount: boolean
  make: (size: SizePx) => Float32Array | readonly number[]
  shape: (size: SizePx) => readonly number[]
}>

/** What a value of a grid is, of the cell at that column and row of a stride. */
const values: readonly ((column: number, row: number, stride: number) => readonly number[])[] = [
  (column, row) => [column, row],
  (column, row) => [column + 0.5, row + 0.5],
  (column, row, stride) => [column * stride, row * stride],
  (column, row, stride) => [(column + 0.5) * stride, (row + 0.5) * stride],
  (_, __, stride) => [stride],
]

/** Constants that hold a value for each cell of all strides, or count cells. */
function gridsOf(graph: EditableGraph, size: SizePx): readonly Grid[] {
  const read = new Map<string, ConstantNumbers>()
  for (const node of graph.nodes)
    for (const name of node.given) {
      const numbers = read.has(name) ? undefined : graph.numbers(name)
      if (numbers !== undefined) read.set(name, numbers)
    }
  const found: Grid[] = []
  for (const [name, numbers] of read) {
    const grid = knownStrides.flatMap((strides) => asGrid(name, numbers, strides, size) ?? [])[0]
    if (grid !== undefined) found.push(grid)
  }
  return found
}

function asGrid(
  name: string,
  numbers: ConstantNumbers,
  strides: readonly number[],
  size: SizePx,
): Grid | undefined {
  const cells = total(size, strides)
  if (numbers.type === 'int64' && numbers.shape.length <= 1) return asCount(name, numbers, strides, size)
  if (numbers.type !== 'float32' && numbers.type !== 'float16') return undefined
  const at = numbers.shape.indexOf(cells)
  if (at < 0) return undefined
  for (const value of values)
    for (const perRow of [true, false]) {
      const make = (of: SizePx) => gridValues(of, strides, value, perRow)
      const made = make(size)
      if (
        made.length === numbers.values.length &&
        made.every((each, index) => Math.abs(each - numbers.values[index]!) < 1e-3)
      )
        return {
          name,
          numbers,
          strides,
          make,
          isCount: false,
          shape: (of) => numbers.shape.map((each, axis) => (axis === at ? total(of, strides) : each)),
        }
    }
  return undefined
}

/** Usual numbers of channels are no larger, and those of cells mostly are. */
const mostChannels = 256

/** Whole numbers of a Reshape or Split that count the cells of a stride, or of all. */
function asCount(
  name: string,
  numbers: ConstantNumbers,
  strides: readonly number[],
  size: SizePx,
): Grid | undefined {
  const counts = [...cellsOf(size, strides), total(size, strides)]
  const known = Array.from(numbers.values)
  // Elsewhere such a number is one of channels.
  const all = known.length > 1 && known.every((value) => counts.includes(value))
  const isCount = (value: number, at: number) =>
    counts.includes(value) &&
    (all || (at > 0 && at === known.length - 1) || (known.length === 1 && value > mostChannels))
  if (!known.some(isCount)) return undefined
  return {
    name,
    numbers,
    strides,
    isCount: true,
    shape: () => numbers.shape,
    make: (of) => {
      const after = [...cellsOf(of, strides), total(of, strides)]
      return known.map((value, at) => (isCount(value, at) ? after[counts.indexOf(value)]! : value))
    },
  }
}

/** @param perRow - the numbers of a cell are apart: all of the first, then all of the second */
function gridValues(
  size: SizePx,
  strides: readonly number[],
  value: (typeof values)[number],
  perRow: boolean,
): Float32Array {
  const cells: (readonly number[])[] = []
  for (const stride of strides)
    for (let row = 0; row < Math.floor(size.heightPx / stride); row++)
      for (let column = 0; column < Math.floor(size.widthPx / stride); column++)
        cells.push(value(column, row, stride))
  const width = cells[0]?.length ?? 0
  return Float32Array.from({ length: cells.length * width }, (_, at) =>
    perRow
      ? cells[at % cells.length]![Math.floor(at / cells.length)]!
      : cells[Math.floor(at / width)]![at % width]!,
  )
}

function regrid(
  graph: EditableGraph,
  { name, numbers, strides, make, shape }: Grid,
  from: SizePx,
  to: SizePx,
): void {
  const coarsest = Math.max(...strides)
  if (to.widthPx % coarsest !== 0 || to.heightPx % coarsest !== 0)
    throw new ModelTransformError(
      `${to.widthPx}x${to.heightPx} does not fit: constant "${name}" is a grid of cells of up to ${coarsest} pixels, made for ${from.widthPx}x${from.heightPx}`,
      `Take sides that are multiples of ${coarsest}.`,
    )
  if (numbers.type === 'float16')
    throw new ModelTransformError(
      `constant "${name}" is a grid in float16`,
      'Change the size before float16.',
    )
  const after = make(to)
  const data = after instanceof Float32Array ? after : BigInt64Array.from(after, BigInt)
  const added = graph.addConstant(`gantry_size/${name}`, shape(to), data)
  for (const node of graph.readers(name))
    graph.replace(
      node,
      withInputs(
        node,
        node.given.map((each) => (each === name ? added : each)),
      ),
    )
}
