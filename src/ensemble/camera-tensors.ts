import { pixelType, type LetterboxPlan } from '../detector/letterbox/letterbox-parameters.js'
import { frameElements, inputShape, pixelArray, writeFrame } from '../detector/input-tensor.js'
import { rowLength } from '../detector/detector-protocol.js'
import type { FrameGeometry } from '../detector/frame-geometry.js'
import type { ModelConfig, ModelInput } from '../repository/model-config.js'
import { configOfDatatype } from '../tensors/element-type.js'
import { dataOf, float32Tensor, type Tensor, type TensorSpec } from '../tensors/tensor.js'
import type { CameraTensor } from './camera-steps.js'

/** A frame of a camera, and the boxes in it where they are known: rows as in `FrameDetections`. */
export type CameraFrame = Readonly<{
  /** uint8 `[heightPx, widthPx, 3]` of the detector's input, RGB; borrowed while the steps run. */
  rgbHwc: ArrayBuffer
  geometry: FrameGeometry
  rows: Float32Array
}>

/** The tensors of API clients, made of a camera's frame: letterbox and head would have given the same. */
export class CameraTensors {
  readonly #batched: boolean

  /** @param plan - of the letterbox. */
  constructor(
    readonly plan: LetterboxPlan,
    readonly brought: ReadonlyMap<string, CameraTensor>,
    { max_batch_size: most = 0 }: ModelConfig,
  ) {
    this.#batched = most > 0
  }

  /** As inputs of a configuration, of those that steps read. */
  inputs(isRead: (tensor: string) => boolean): readonly ModelInput[] {
    return [...this.brought].flatMap(([name, what]): ModelInput[] => {
      if (!isRead(name)) return []
      const { datatype, shape } = this.#spec(name, what)
      return [
        {
          name,
          data_type: configOfDatatype(datatype),
          dims: this.#batched ? shape.slice(1) : shape,
        },
      ]
    })
  }

  /** @param names - of those that are wanted. */
  of(frame: CameraFrame, names: readonly string[]): readonly Tensor[] {
    return names.map((name) => this.#tensor(name, this.brought.get(name)!, frame))
  }

  #spec(name: string, what: CameraTensor): TensorSpec {
    const { widthPx, heightPx } = this.plan.size
    const one = this.#batched ? [1] : []
    switch (what) {
      case 'pixels':
        return { name, datatype: pixelType(this.plan), shape: inputShape(this.plan, 1) }
      case 'frame':
        return { name, datatype: 'UINT8', shape: [...one, heightPx, widthPx, 3] }
      case 'geometry':
        return { name, datatype: 'FP32', shape: [1, 5] }
      case 'size':
        return { name, datatype: 'INT64', shape: [1, 2] }
      case 'detections':
        return { name, datatype: 'FP32', shape: [...one, -1, 6] }
      default:
        return what satisfies never
    }
  }

  #tensor(name: string, what: CameraTensor, { rgbHwc, geometry, rows }: CameraFrame): Tensor {
    const { datatype, shape } = this.#spec(name, what)
    const { letterbox, regionPx } = geometry
    switch (what) {
      case 'pixels':
        return { name, datatype, shape, data: this.#pixels(rgbHwc), movable: true }
      case 'frame':
        return { name, datatype, shape, data: new Uint8Array(rgbHwc) }
      case 'geometry': {
        const { scale, padXPx, padYPx } = letterbox
        return float32Tensor(
          name,
          shape,
          Float32Array.of(scale, padXPx, padYPx, regionPx.widthPx, regionPx.heightPx),
        )
      }
      case 'size': {
        const { widthPx, heightPx } = this.plan.size
        return { name, datatype, shape, data: dataOf(BigInt64Array.of(BigInt(widthPx), BigInt(heightPx))) }
      }
      case 'detections': {
        const boxes = toTensorRows(rows, regionPx)
        return float32Tensor(name, [...shape.slice(0, -2), boxes.length / 6, 6], boxes)
      }
      default:
        return what satisfies never
    }
  }

  #pixels(rgbHwc: ArrayBuffer): Uint8Array {
    const plan = { ...this.plan, name: '' }
    const elements = frameElements(plan)
    const pixels = new (pixelArray(plan.layout))(elements)
    writeFrame(plan, rgbHwc, pixels, 0)
    return dataOf(pixels)
  }
}

/** Where class, score and box stand in a row of a tensor. */
const tensorOrder = [5, 4, 0, 1, 2, 3]

type Place = Readonly<{ x: number; y: number }>

/** class, score, box in the picture -> box in the analysed region, score, class. */
function toTensorRows(rows: Float32Array, region: Place): Float32Array {
  const boxes = new Float32Array(rows.length)
  for (let at = 0; at + rowLength <= rows.length; at += rowLength) {
    boxes[at] = rows[at + 2]! - region.x
    boxes[at + 1] = rows[at + 3]! - region.y
    boxes[at + 2] = rows[at + 4]! - region.x
    boxes[at + 3] = rows[at + 5]! - region.y
    boxes[at + 4] = rows[at + 1]!
    boxes[at + 5] = rows[at]!
  }
  return boxes
}

/**
 * Rows of `detections` as cameras have them: class, score, box in the picture, clipped to it. Rows of score 0, which fill up batches, and
 * boxes without area are left out; `kept` has the places of the others in the tensor, and `boxes` all of them.
 *
 * @returns `undefined` if the tensor has not the form of detections.
 */
export function rowsOf(
  { datatype, shape, data }: Tensor,
  { regionPx, source }: FrameGeometry,
): Readonly<{ rows: Float32Array<ArrayBuffer>; kept: readonly number[]; boxes: Float32Array }> | undefined {
  if (datatype !== 'FP32' || shape.at(-1) !== 6 || data.byteLength % (4 * 6) !== 0) return undefined
  const boxes = new Float32Array(new Uint8Array(data).buffer)
  const rows = new Float32Array(boxes.length)
  const kept: number[] = []
  for (let at = 0; at < boxes.length; at += 6) {
    const x1 = clipped(boxes[at]! + regionPx.x, source.widthPx)
    const y1 = clipped(boxes[at + 1]! + regionPx.y, source.heightPx)
    const x2 = clipped(boxes[at + 2]! + regionPx.x, source.widthPx)
    const y2 = clipped(boxes[at + 3]! + regionPx.y, source.heightPx)
    const [score, classId] = [boxes[at + 4]!, boxes[at + 5]!]
    if (!(x1 < x2 && y1 < y2 && score > 0) || classId < 0) continue
    rows.set([classId, score, x1, y1, x2, y2], kept.length * rowLength)
    kept.push(at / 6)
  }
  const all = Float32Array.from(boxes, (_, at) => boxes[at - (at % 6) + (tensorOrder[at % 6] ?? 0)]!)
  return { rows: rows.slice(0, kept.length * rowLength), kept, boxes: all }
}

function clipped(value: number, most: number): number {
  return Math.min(Math.max(value, 0), most)
}
