import { bestRows, opsetOf } from '../../detector/heads/top-rows.js'
import type { HeadPlan } from '../../detector/heads/head.js'
import { GraphNodes } from '../../repository/graph-nodes.js'
import { readOnnxFile } from '../../repository/onnx-file.js'
import type { SizePx } from '../../vision/letterbox.js'
import { EditableGraph } from './editable-graph.js'
import { ModelTransformError } from './transform-error.js'

/** When a box is one, as in `gantry.score_threshold`, `gantry.iou_threshold` and `gantry.max_detections`. */
export type NmsLimits = Readonly<{ scoreThreshold: number; iouThreshold: number; maxDetections: number }>

/** Rows of a frame that are looked at; more reach no threshold of use. */
const mostRows = 1_000
const output = 'detections'

/** A graph whose one output is `[N, boxes, 6]`: corners in input pixels, score, class; unused rows have score 0. */
export type NmsInside = Readonly<{ bytes: Uint8Array; output: string; boxes: number }>

/**
 * Puts decoding of the head and NMS within each class into the graph, by the operator NonMaxSuppression.
 *
 * @param input - size at which the model runs.
 * @throws ModelTransformError for a head that has its NMS inside, or one that the graph cannot decode
 */
export function nmsInside(path: string, head: HeadPlan, input: SizePx, limits: NmsLimits): NmsInside {
  if (head.kind === 'end-to-end' || head.kind === 'boxes')
    throw new ModelTransformError(
      `the head "${head.kind}" gives boxes after NMS already`,
      'Leave out the step nms.',
    )
  const info = readOnnxFile(path)
  const editable = new EditableGraph(path)
  const graph = new GraphNodes(opsetOf(info), 'gantry_nms')
  const best = bestRows(graph, head, input, info, mostRows)
  if (typeof best === 'string')
    throw new ModelTransformError(
      `NMS cannot go inside behind output "${head.output}": ${best}`,
      'Heads yolov8, yolov5 and yolox can; of others Gantry does it behind the model. Leave out the step nms.',
    )
  const { layout, tensor, count, batch } = best
  const { axis, width, classes, objectness } = layout
  const rows = axis === 1 ? tensor : graph.node('Transpose', [tensor], { perm: [0, 2, 1] })
  const corners = cornersOf(graph, rows)
  const scores = scoresOf(graph, rows, { width, classes, objectness })
  const boxes = Math.min(limits.maxDetections, count * classes)
  const kept = suppressed(graph, corners, scores, { ...limits, maxDetections: boxes })
  const place = graph.top(kept, boxes, 1)
  const score = `${place}_values`
  const perClass = graph.whole([count])
  const column = graph.whole([0, -1, 1])
  const row = graph.node('Reshape', [graph.node('Mod', [place, perClass]), column])
  const four = graph.node('Expand', [row, graph.whole([1, 1, 4])])
  const found = graph.node(
    'Concat',
    [
      graph.node('GatherElements', [corners, four], { axis: 1 }),
      graph.node('Reshape', [score, column]),
      graph.node('Cast', [graph.node('Reshape', [graph.node('Div', [place, perClass]), column])], { to: 1 }),
    ],
    { axis: 2 },
  )
  const name = editable.outputs.includes(output) ? `gantry_${output}` : output
  const nodes = graph.nodes.map((node) => ({
    ...node,
    outputs: node.outputs.map((each) => (each === found ? name : each)),
  }))
  editable.finishWith({
    nodes,
    constants: graph.constants,
    outputs: [{ name, type: 'float32', shape: [batch, boxes, 6] }],
  })
  return { bytes: editable.finished(), output: name, boxes }
}

/** Centre and size to corners, `[N, rows, 4]`. */
function cornersOf(graph: GraphNodes, rows: string): string {
  const centre = graph.slice(rows, 2, 0, 2)
  const half = graph.node('Mul', [graph.slice(rows, 2, 2, 4), graph.constant([1], Float32Array.of(0.5))])
  return graph.node('Concat', [graph.node('Sub', [centre, half]), graph.node('Add', [centre, half])], {
    axis: 2,
  })
}

/** `[N, classes, rows]`: of each row the score of its best class, 0 of the others, as Gantry reads them. */
function scoresOf(
  graph: GraphNodes,
  rows: string,
  {
    width,
    classes,
    objectness,
  }: Readonly<{ width: number; classes: number; objectness: number | undefined }>,
): string {
  const alone = graph.slice(rows, 2, width - classes, width)
  const whole =
    objectness === undefined
      ? alone
      : graph.node('Mul', [alone, graph.slice(rows, 2, objectness, objectness + 1)])
  const isBest = graph.node('Cast', [graph.node('Equal', [whole, graph.max(whole, 2)])], { to: 1 })
  return graph.node('Transpose', [graph.node('Mul', [whole, isBest])], { perm: [0, 2, 1] })
}

/** Scores `[N, classes * rows]` of the boxes that are kept, 0 for the others. */
function suppressed(graph: GraphNodes, corners: string, scores: string, limits: NmsLimits): string {
  const kept = graph.node('NonMaxSuppression', [
    corners,
    scores,
    graph.whole([limits.maxDetections]),
    graph.constant([1], Float32Array.of(limits.iouThreshold)),
    graph.constant([1], Float32Array.of(limits.scoreThreshold)),
  ])
  const nothing = graph.node('ConstantOfShape', [graph.node('Shape', [scores])])
  const spread = graph.node('ScatterND', [nothing, kept, graph.node('GatherND', [scores, kept])])
  return graph.node('Reshape', [spread, graph.whole([0, -1])])
}
