import type { Constant, TensorSpec } from './onnx-builder.js'
import { constantOnnx } from './onnx-models.js'

/**
 * Detectors of 64x64 that fire every channel, or class id, in a box of its own, with a score that tells which one it is: whoever reads
 * their results knows what each name should have been.
 */
export type TellingModel = Readonly<{ onnx: Uint8Array; outputs: readonly string[] }>

/** Score of channel `raw`, and back. */
export const scoreOf = (raw: number) => 0.95 - raw * 0.005
export const rawOf = (score: number) => Math.round((0.95 - score) / 0.005)

const images: TensorSpec = { name: 'images', type: 'float32', shape: [1, 3, 64, 64] }
const side = 64

/** Boxes that do not overlap: cell `index` of a 10x10 raster. */
function boxAt(index: number): [number, number, number, number] {
  const x = (index % 10) * 6.4
  const y = Math.floor(index / 10) * 6.4
  return [x + 1, y + 1, x + 5, y + 5]
}

const centreAt = (index: number) => {
  const [x1, y1, x2, y2] = boxAt(index)
  return [(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1] as const
}

function f32(name: string, shape: readonly number[], fill = 0): Constant & { data: Float32Array } {
  return { name, shape, data: new Float32Array(shape.reduce((a, b) => a * b, 1)).fill(fill) }
}

function model(constants: readonly Constant[], metadata: Metadata): TellingModel {
  return {
    onnx: constantOnnx([images], constants, [], [], metadata),
    outputs: constants.map(({ name }) => name),
  }
}

const logit = (p: number) => Math.log(p / (1 - p))
const list = (count: number) => Array.from({ length: count }, (_, index) => index)

type Metadata = Readonly<Record<string, string>>
export type TellingHead = (channels: number, metadata?: Metadata) => TellingModel

/** One channel of scores for each class. */
export const channelHeads = {
  yolov8: (channels: number, metadata: Metadata = {}) => {
    const out = f32('output0', [1, 4 + channels, 84])
    for (const c of list(channels)) {
      centreAt(c).forEach((value, row) => (out.data[row * 84 + c] = value))
      out.data[(4 + c) * 84 + c] = scoreOf(c)
    }
    return model([out], metadata)
  },
  yolov5: (channels: number, metadata: Metadata = {}) => {
    const width = 5 + channels
    const out = f32('output0', [1, 252, width])
    for (const c of list(channels)) {
      out.data.set([...centreAt(c), 1], c * width)
      out.data[c * width + 5 + c] = scoreOf(c)
    }
    return model([out], metadata)
  },
  yolox: (channels: number, metadata: Metadata = {}) => {
    const width = 5 + channels
    const out = f32('output0', [1, 84, width])
    for (const c of list(channels)) {
      // Cells of stride 8, 16 and 32 in turn, a box of two pixels at the corner of each.
      out.data.set([0.5, 0.5, -4, -4, 1], c * width)
      out.data[c * width + 5 + c] = scoreOf(c)
    }
    return model([out], metadata)
  },
  'nanodet in pairs': (channels: number, metadata: Metadata = {}) => {
    const outputs: Constant[] = []
    let first = 0
    for (const stride of [8, 16, 32]) {
      const cells = (side / stride) ** 2
      const scores = f32(`cls_${stride}`, [1, cells, channels])
      const distances = f32(`dis_${stride}`, [1, cells, 32])
      for (const cell of list(cells))
        if (first + cell < channels) scores.data[cell * channels + first + cell] = scoreOf(first + cell)
      for (const at of list(cells * 4)) distances.data[at * 8] = 4
      first += cells
      outputs.push(scores, distances)
    }
    return model(outputs, metadata)
  },
  'nanodet in one': (channels: number, metadata: Metadata = {}) => {
    const width = channels + 32
    const out = f32('output', [1, 85, width])
    for (const c of list(channels)) {
      out.data[c * width + c] = scoreOf(c)
      for (const at of list(4)) out.data[c * width + channels + at * 8] = 4
    }
    return model([out], metadata)
  },
  'raw grids': (channels: number, metadata: Metadata = {}) => {
    const width = 5 + channels
    const outputs = [8, 4, 2].map((size, level) => {
      const out = f32(`p${level}`, [1, 3, size, size, width], -9)
      if (level === 0)
        for (const c of list(channels)) {
          out.data.set([0, 0, 0, 0, 20], c * width)
          out.data[c * width + 5 + c] = logit(scoreOf(c))
        }
      return out
    })
    return model(outputs, metadata)
  },
  'YOLO-NAS': (channels: number, metadata: Metadata = {}) => {
    const scores = f32('scores', [1, 84, channels])
    const boxes = f32('boxes', [1, 84, 4])
    for (const c of list(channels)) {
      scores.data[c * channels + c] = scoreOf(c)
      boxes.data.set(boxAt(c), c * 4)
    }
    return model([boxes, scores], metadata)
  },
  'RT-DETR logits': (channels: number, metadata: Metadata = {}) => {
    const scores = f32('logits', [1, 100, channels], -9)
    const boxes = f32('pred_boxes', [1, 100, 4])
    for (const c of list(channels)) {
      scores.data[c * channels + c] = logit(scoreOf(c))
      boxes.data.set(
        centreAt(c).map((value) => value / side),
        c * 4,
      )
    }
    return model([scores, boxes], metadata)
  },
} satisfies Record<string, TellingHead>

/** A channel more than there are classes: it stands for nothing, and fires as the others do. */
export const backgroundHeads = {
  SSD: (channels: number, metadata: Metadata = {}) => {
    const scores = f32('scores', [1, 100, channels])
    const boxes = f32('boxes', [1, 100, 4])
    for (const c of list(channels)) {
      scores.data[c * channels + c] = scoreOf(c)
      boxes.data.set(
        boxAt(c).map((value) => value / side),
        c * 4,
      )
    }
    return model([scores, boxes], metadata)
  },
  DETR: (channels: number, metadata: Metadata = {}) => {
    const scores = f32('logits', [1, 100, channels])
    const boxes = f32('pred_boxes', [1, 100, 4])
    for (const row of list(100)) {
      const c = row < channels ? row : channels - 1
      const p = scoreOf(c)
      scores.data[row * channels + c] = Math.log((p * (channels - 1)) / (1 - p))
      boxes.data.set(
        centreAt(row).map((value) => value / side),
        row * 4,
      )
    }
    return model([scores, boxes], metadata)
  },
} satisfies Record<string, TellingHead>

/** Heads that give class ids; `ids` are those that fire. */
const i64 = (name: string, shape: readonly number[], values: readonly number[]): Constant => ({
  name,
  shape,
  data: BigInt64Array.from(values, BigInt),
})

function apart(
  ids: readonly number[],
  names: readonly [boxes: string, scores: string, labels: string],
  batch: readonly number[],
  boxOf: (index: number) => readonly number[],
  metadata: Metadata,
): TellingModel {
  const boxes = f32(names[0], [...batch, ids.length, 4])
  const scores = f32(names[1], [...batch, ids.length])
  ids.forEach((id, index) => {
    boxes.data.set(boxOf(index), index * 4)
    scores.data[index] = scoreOf(id)
  })
  return model([boxes, scores, i64(names[2], [...batch, ids.length], ids)], metadata)
}

const relative = (index: number) => boxAt(index).map((value) => value / side)

export const idHeads = {
  torchvision: (ids: readonly number[], metadata: Metadata = {}) =>
    apart(ids, ['boxes', 'scores', 'labels'], [], boxAt, metadata),
  "TensorFlow's detection API": (ids: readonly number[], metadata: Metadata = {}) =>
    apart(
      ids,
      ['detection_boxes', 'detection_scores', 'detection_classes'],
      [1],
      (index) => {
        const [x1 = 0, y1 = 0, x2 = 0, y2 = 0] = relative(index)
        return [y1, x1, y2, x2]
      },
      metadata,
    ),
  'SSD with NMS': (ids: readonly number[], metadata: Metadata = {}) =>
    apart(ids, ['bboxes', 'scores', 'labels'], [1], relative, metadata),
  'boxes, scores, labels': (ids: readonly number[], metadata: Metadata = {}) =>
    apart(ids, ['boxes', 'scores', 'labels'], [1], boxAt, metadata),
  'end-to-end': (ids: readonly number[], metadata: Metadata = {}, score?: number) => {
    const out = f32('output0', [1, ids.length, 6])
    ids.forEach((id, index) => out.data.set([...boxAt(index), score ?? scoreOf(id), id], index * 6))
    return model([out], metadata)
  },
}
