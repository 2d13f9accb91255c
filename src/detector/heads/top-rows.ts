import { GraphNodes } from '../../repository/graph-nodes.js'
import type { GraphAddition } from '../../repository/onnx-writer.js'
import type { OnnxInfo } from '../../repository/onnx-file.js'
import type { ModelTensor } from '../../tensors/tensor.js'
import type { SizePx } from '../../vision/letterbox.js'
import { gridCells } from './grid.js'
import type { HeadPlan } from './head.js'

/** Below this, opsets have another TopK and Slice. */
const leastOpset = 11
/** Before this, constants of a graph are inputs of it as well. */
const leastIrVersion = 4
/** Of heads whose file does not tell its rows: they have no fewer than a row for each cell of these. */
const usualStrides = [8, 16, 32]
/** Names of what is added begin so. */
const prefix = 'gantry_top_rows'

/** A graph that gives the rows of a head with the best scores alone, and how they are read. */
export type TopRows = Readonly<{ addition: GraphAddition; head: HeadPlan }>

/**
 * Lets the graph choose the rows of a head that score best, so that a device hands over those in place of all its cells. Rows of YOLOX are
 * decoded there, since a row that is taken out of its grid no longer tells its cell, and float16 becomes float32.
 *
 * A box is lost only where more than `rows` of a frame reach the threshold.
 *
 * @param rows - of a frame.
 * @returns a clause why the head is read whole, where the graph cannot choose.
 */
export function topRows(
  head: HeadPlan,
  input: SizePx,
  info: Pick<OnnxInfo, 'outputs' | 'opsets' | 'irVersion'>,
  rows: number,
): TopRows | string {
  const graph = new GraphNodes(opsetOf(info), prefix)
  const best = bestRows(graph, head, input, info, rows)
  if (typeof best === 'string') return best
  const { cells, tensor, batch, layout } = best
  if (cells <= rows) return `it has ${cells} rows, which is not more than ${rows}`
  const shape = layout.axis === 1 ? [batch, rows, layout.width] : [batch, layout.width, rows]
  const { nodes, constants } = graph
  const { quantised: _, ...plan } = head
  return {
    addition: { nodes, constants, outputs: [{ name: tensor, type: 'float32', shape }] },
    head: { ...plan, output: tensor, kind: head.kind === 'yolox' ? 'yolov5' : head.kind },
  }
}

/** Of a model, for its standard operators; 0 where it names none. */
export function opsetOf({ opsets }: Pick<OnnxInfo, 'opsets'>): number {
  return opsets[''] ?? opsets['ai.onnx'] ?? 0
}

/** Rows of a head, decoded into centre and size in pixels, in float32. */
export type BestRows = Readonly<{
  tensor: string
  /** How many: those asked for, or all there are. */
  count: number
  /** Rows of the head. */
  cells: number
  batch: number | string
  layout: HeadLayout
}>

/**
 * Puts nodes into `graph` that choose and decode the rows of a head with the best scores.
 *
 * @param rows - of a frame, at most.
 * @returns a clause why the graph cannot do it.
 */
export function bestRows(
  graph: GraphNodes,
  head: HeadPlan,
  input: SizePx,
  info: Pick<OnnxInfo, 'outputs' | 'opsets' | 'irVersion'>,
  rows: number,
): BestRows | string {
  const { outputs, irVersion } = info
  const output = outputs.find(({ name }) => name === head.output)
  const opset = opsetOf(info)
  if (output === undefined) return `it has no output "${head.output}"`
  if (opset < leastOpset) return `it has opset ${opset}, and ${leastOpset} is the first with the operators`
  if (irVersion < leastIrVersion) return `it has IR version ${irVersion}, where constants are inputs too`
  if (output.type !== 'float32' && output.type !== 'float16') return `its output is ${output.type}`
  const layout = layoutOf(head, input, output)
  if (typeof layout === 'string') return layout
  const cells = layout.cells ?? gridCells(input, usualStrides)
  const count = Math.min(rows, cells)
  const values = output.type === 'float32' ? output.name : graph.node('Cast', [output.name], { to: 1 })
  const chosen = choose(graph, values, layout, count)
  const tensor = head.kind === 'yolox' ? decodeCells(graph, chosen, layout, head.strides, input) : chosen.rows
  return { tensor, count, cells, layout, batch: output.shape[0] === 1 ? 1 : 'batch' }
}

/** Where the cells of an output are, and its numbers for each. */
export type HeadLayout = Readonly<{
  /** Of the cells. */
  axis: 1 | 2
  /** Absent where it follows from the size of the input in a way that the file does not tell. */
  cells: number | undefined
  /** Numbers of a cell. */
  width: number
  classes: number
  /** The number of a cell by which the scores of its classes are multiplied. */
  objectness: number | undefined
}>

function layoutOf(head: HeadPlan, input: SizePx, { shape }: ModelTensor): HeadLayout | string {
  const { kind, classes = 0 } = head
  const axis = kind === 'yolov8' ? 2 : 1
  if ((head.options?.activation ?? 'none') !== 'none')
    return `its scores are made 0..1 behind it (gantry.head_activation "${head.options?.activation}")`
  if (head.others !== undefined || !(kind === 'yolov5' || kind === 'yolov8' || kind === 'yolox'))
    return `of a ${kind} head all is read`
  const told = kind === 'yolox' ? gridCells(input, head.strides) : shape[axis]
  const cells = typeof told === 'number' ? told : undefined
  if (classes === 0) return 'it has no classes'
  const objectness = kind === 'yolov8' ? undefined : 4
  return { axis, cells, classes, objectness, width: (objectness ?? 3) + 1 + classes }
}

type Chosen = Readonly<{ rows: string; indices: string }>

function choose(graph: GraphNodes, values: string, layout: HeadLayout, rows: number): Chosen {
  const { axis, width, classes, objectness } = layout
  const scoresAxis = 3 - axis
  const scores = graph.slice(values, scoresAxis, width - classes, width)
  const best = graph.max(scores, scoresAxis)
  const score =
    objectness === undefined
      ? best
      : graph.node('Mul', [graph.slice(values, scoresAxis, objectness, objectness + 1), best])
  const indices = graph.top(score, rows, axis)
  const whole = graph.whole(axis === 1 ? [1, 1, width] : [1, width, 1])
  const places = graph.node('Expand', [indices, whole])
  return { indices, rows: graph.node('GatherElements', [values, places], { axis }) }
}

/** As {@link YoloXHead} reads them; in float32. */
function decodeCells(
  graph: GraphNodes,
  { rows, indices }: Chosen,
  { width }: HeadLayout,
  strides: readonly number[],
  input: SizePx,
): string {
  const cells = gridCells(input, strides)
  const corners = new Float32Array(cells * 2)
  const sizes = new Float32Array(cells)
  let cell = 0
  for (const stride of strides)
    for (let row = 0; row < Math.floor(input.heightPx / stride); row++)
      for (let column = 0; column < Math.floor(input.widthPx / stride); column++) {
        corners.set([column, row], cell * 2)
        sizes[cell] = stride
        cell += 1
      }
  const flat = graph.node('Reshape', [indices, graph.whole([0, -1])])
  const corner = graph.node('Gather', [graph.constant([cells, 2], corners), flat])
  const size = graph.node('Gather', [graph.constant([cells, 1], sizes), flat])
  const centre = graph.node('Mul', [graph.node('Add', [graph.slice(rows, 2, 0, 2), corner]), size])
  const extent = graph.node('Mul', [graph.node('Exp', [graph.slice(rows, 2, 2, 4)]), size])
  return graph.node('Concat', [centre, extent, graph.slice(rows, 2, 4, width)], { axis: 2 })
}
