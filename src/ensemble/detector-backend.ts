import ort from 'onnxruntime-node'
import { ModelInvalidError } from '../inference/errors.js'
import { OrtModel } from '../inference/ort-model.js'
import { deviceOf } from '../inference/providers.js'
import type { Outgoing, WorkerBackend } from '../inference/worker-runtime.js'
import { nowMs } from '../lifecycle/clock.js'
import {
  type DetectorAnswer,
  type DetectorJob,
  type DetectorLoad,
  type DetectorReady,
  type FrameDetections,
  rowLength,
} from './detector-protocol.js'
import { type FrameGeometry, toSourceBox } from './frame-geometry.js'
import { Candidates } from './heads/candidates.js'
import { createHead } from './heads/create-head.js'
import type { Head } from './heads/head.js'
import { frameElements, type InputPlan, isFrameItself, writeFrame } from './input-tensor.js'
import { bestOf, classAwareNms } from './nms.js'

/** Preprocess, detect and postprocess, in a worker thread: frames in, boxes in source pixels out. */
export class DetectorBackend implements WorkerBackend<
  DetectorLoad,
  DetectorReady,
  DetectorJob,
  DetectorAnswer
> {
  #loaded: LoadedDetector | undefined

  async load(options: DetectorLoad): Promise<DetectorReady> {
    const beganMs = nowMs()
    const model = await OrtModel.open(options.session, {
      names: [options.head.output],
      sizeIsKnown: options.head.kind !== 'end-to-end',
    })
    const loadedMs = nowMs()
    const detector = new LoadedDetector(model, options)
    const batch = options.warmUpBatch[deviceOf(model.provider)]
    await detector.warmUp(batch)
    this.#loaded = detector
    return {
      provider: model.provider,
      notes: model.notes,
      loadMs: loadedMs - beganMs,
      warmUpMs: nowMs() - loadedMs,
    }
  }

  async run(job: DetectorJob): Promise<Outgoing<DetectorAnswer>> {
    if (this.#loaded === undefined) throw new Error('run before load')
    const result = await this.#loaded.run(job)
    const transfer = result.frames.flatMap((frame) => [frame.rgbHwc, frame.rows.buffer])
    return { result, transfer }
  }

  async release(): Promise<void> {
    await this.#loaded?.model.release()
    this.#loaded = undefined
  }
}

class LoadedDetector {
  readonly #candidates = new Candidates()
  readonly #inputs = new Map<number, Float32Array | Uint8Array>()
  #head: Head | undefined
  #headShape = ''

  constructor(
    readonly model: OrtModel,
    readonly options: DetectorLoad,
  ) {}

  /** Runs on zeros, so that the first frame finds memory allocated and code compiled, and checks the real output shape. */
  async warmUp(batchSize: number): Promise<void> {
    const { widthPx, heightPx } = this.options.input.size
    const whole = { x: 0, y: 0, widthPx, heightPx }
    const geometry = { letterbox: { scale: 1, padXPx: 0, padYPx: 0 }, regionPx: whole, source: whole }
    for (const size of new Set([1, batchSize])) {
      const frames = Array.from({ length: size }, () => ({
        rgbHwc: new ArrayBuffer(widthPx * heightPx * 3),
        geometry,
      }))
      await this.run({ frames })
    }
  }

  async run({ frames }: DetectorJob): Promise<DetectorAnswer> {
    const startedMs = nowMs()
    const output = await this.#runModel(this.#fill(frames.map((frame) => frame.rgbHwc)), frames.length)
    let beganMs = nowMs()
    const inferMs = beganMs - startedMs
    const perFrame = output.length / frames.length
    const detections = frames.map(({ rgbHwc, geometry }, index): FrameDetections => {
      const rows = this.#detect(output, index * perFrame, geometry)
      const endedMs = nowMs()
      const postprocessMs = endedMs - beganMs
      beganMs = endedMs
      return { rgbHwc, rows, postprocessMs }
    })
    return { startedMs, inferMs, frames: detections }
  }

  #fill(buffers: readonly ArrayBuffer[]): Float32Array | Uint8Array {
    const { input } = this.options
    const [only] = buffers
    if (buffers.length === 1 && only !== undefined && isFrameItself(input)) return new Uint8Array(only)
    const data = this.#inputFor(buffers.length)
    buffers.forEach((buffer, index) => writeFrame(input, buffer, data, index * frameElements(input)))
    return data
  }

  #inputFor(batchSize: number): Float32Array | Uint8Array {
    const known = this.#inputs.get(batchSize)
    if (known !== undefined) return known
    const length = batchSize * frameElements(this.options.input)
    const data =
      this.options.input.layout === 'float32-nchw' ? new Float32Array(length) : new Uint8Array(length)
    this.#inputs.set(batchSize, data)
    return data
  }

  async #runModel(data: Float32Array | Uint8Array, batchSize: number): Promise<Float32Array> {
    const { input, head } = this.options
    const tensor =
      data instanceof Float32Array
        ? new ort.Tensor('float32', data, inputShape(input, batchSize))
        : new ort.Tensor('uint8', data, inputShape(input, batchSize))
    const outputs = await this.model.run({ name: input.name, tensor }, batchSize)
    const output = outputs[head.output]
    const values = output?.data
    if (output === undefined || !(values instanceof Float32Array) || output.dims[0] !== batchSize)
      throw new ModelInvalidError(
        `output "${head.output}" is ${output === undefined ? 'missing' : `${output.type} [${output.dims.join(', ')}]`}, but float32 [${batchSize}, ...] is expected`,
        'Export the model with a batch dimension that goes through to the output.',
      )
    this.#useHead(output.dims)
    return values
  }

  /** Models with NMS inside may give another number of boxes in every run. */
  #useHead(dims: readonly number[]): void {
    const shape = dims.slice(1).join()
    if (this.#head !== undefined && shape === this.#headShape) return
    this.#head = createHead(this.options.head, this.options.input.size, dims)
    this.#headShape = shape
  }

  #detect(output: Float32Array, start: number, geometry: FrameGeometry): Float32Array<ArrayBuffer> {
    const { scoreThreshold, iouThreshold, maxDetections } = this.options
    const head = this.#head
    if (head === undefined) throw new Error('detect before a run')
    const found = this.#candidates
    found.clear()
    head.decode(output, start, scoreThreshold, found)
    const kept = head.needsNms
      ? classAwareNms(found, iouThreshold, maxDetections)
      : bestOf(found, maxDetections)
    return toRows(found, kept, geometry)
  }
}

function inputShape({ layout, size }: InputPlan, batchSize: number): number[] {
  return layout === 'uint8-nhwc'
    ? [batchSize, size.heightPx, size.widthPx, 3]
    : [batchSize, 3, size.heightPx, size.widthPx]
}

function toRows(
  found: Candidates,
  kept: readonly number[],
  geometry: FrameGeometry,
): Float32Array<ArrayBuffer> {
  const rows = new Float32Array(kept.length * rowLength)
  let length = 0
  for (const index of kept) {
    const at = index * 4
    const box = toSourceBox(
      found.boxes[at]!,
      found.boxes[at + 1]!,
      found.boxes[at + 2]!,
      found.boxes[at + 3]!,
      geometry,
    )
    if (box === undefined) continue
    rows.set([found.classes[index]!, found.scores[index]!, box.x1, box.y1, box.x2, box.y2], length)
    length += rowLength
  }
  return length === rows.length ? rows : rows.slice(0, length)
}
