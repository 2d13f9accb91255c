import { type DetectorModel, type DetectorPlan, planDetector } from '../../detector/detector-plan.js'
import { type FrameGeometry, toSourceBox } from '../../detector/frame-geometry.js'
import { type DetectionLimits, FrameReader } from '../../detector/frame-reader.js'
import { headValues } from '../../detector/head-values.js'
import type { StrangeScores } from '../../detector/strange-scores.js'
import { labelOf } from '../../detector/heads/label-list.js'
import { outputsOf } from '../../detector/heads/head.js'
import {
  frameElements,
  inputShape,
  pixelArray,
  type SizeInput,
  writeFrame,
} from '../../detector/input-tensor.js'
import { pixelType } from '../../detector/letterbox/letterbox-parameters.js'
import { onnxOfDatatype } from '../../tensors/element-type.js'
import { dataOf, type Tensor } from '../../tensors/tensor.js'
import type { Detection } from '../../vision/detection.js'
import { frameBytes, type FrameFormat } from '../../vision/frame.js'
import { FramePool } from '../../vision/frame-pool.js'
import type { SizePx } from '../../vision/letterbox.js'
import type { Picture } from './picture-scorer.js'
import { letterboxedFrame } from './letterboxed-frame.js'
import { ServedAnswerError } from './served-ensemble.js'
import type { ServedForm, ServedRequest } from './served-form.js'

/** Idle frames that are kept. */
const keptFrames = 16

/** A detector of any server: the letterbox before it and the reading of its outputs are done here, as for cameras. */
export class ServedDetector implements ServedForm {
  readonly labels: readonly string[]
  readonly input: string
  readonly outputs: readonly string[]
  readonly #plan: DetectorPlan
  readonly #format: FrameFormat
  readonly #reader: FrameReader
  readonly #pool: FramePool

  /** @throws ModelInvalidError, HeadUnknownError, ModelLabelsError, ModelConfigError */
  constructor(
    model: DetectorModel,
    limits: DetectionLimits,
    readonly onStrange: (strange: StrangeScores) => void = () => undefined,
  ) {
    const plan = planDetector(model)
    const { size, align } = plan.input
    this.#plan = plan
    this.labels = plan.labels
    this.input = `${size.widthPx}x${size.heightPx}`
    this.outputs = outputsOf(plan.head)
    this.#format = { input: size, align }
    this.#reader = new FrameReader(plan.head, size, limits)
    this.#pool = new FramePool(frameBytes(this.#format), keptFrames)
  }

  async requestFor(picture: Picture): Promise<ServedRequest> {
    const { input } = this.#plan
    const { rgbHwc, ...geometry } = await letterboxedFrame(picture, this.#format, this.#pool)
    const values = new (pixelArray(input.layout))(frameElements(input))
    writeFrame(input, rgbHwc, values, 0)
    this.#pool.give(rgbHwc)
    const image: Tensor = {
      name: input.name,
      datatype: pixelType(input),
      shape: inputShape(input, 1),
      data: dataOf(values),
    }
    const inputs = input.sizeInput === undefined ? [image] : [image, sizeTensor(input.sizeInput, input.size)]
    return { size: geometry.source, inputs, read: (outputs) => this.#read(outputs, geometry) }
  }

  #read(outputs: readonly Tensor[], geometry: FrameGeometry): readonly Detection[] {
    const { head } = this.#plan
    const values = outputsOf(head).map((name, index) => {
      const tensor = outputs.find((each) => each.name === name)
      if (tensor === undefined) throw new ServedAnswerError(`output "${name}" is missing in the answer`)
      const own = Uint8Array.from(tensor.data).buffer
      return {
        values: headValues(own, onnxOfDatatype(tensor.datatype), head.quantised?.[index]),
        shape: tensor.shape,
      }
    })
    const { found, kept, strange } = this.#reader.read(values, 0)
    if (strange !== undefined) this.onStrange(strange)
    return kept.flatMap((index) => {
      const corners = found.boxes.subarray(index * 4, index * 4 + 4) as unknown as Corners
      const boxPx = toSourceBox(...corners, geometry)
      const id = found.classes[index]!
      const label = labelOf(this.labels, id) ?? `class_${id}`
      return boxPx === undefined ? [] : [{ label, score: found.scores[index]!, boxPx }]
    })
  }
}

type Corners = readonly [number, number, number, number]

function sizeTensor({ name, type, order }: SizeInput, { widthPx, heightPx }: SizePx): Tensor {
  const numbers = order === 'wh' ? [widthPx, heightPx] : [heightPx, widthPx]
  const shape = [1, 2]
  if (type === 'float32') return { name, datatype: 'FP32', shape, data: dataOf(Float32Array.from(numbers)) }
  if (type === 'int32') return { name, datatype: 'INT32', shape, data: dataOf(Int32Array.from(numbers)) }
  return { name, datatype: 'INT64', shape, data: dataOf(BigInt64Array.from(numbers, BigInt)) }
}
