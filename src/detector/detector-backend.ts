import ort from '../backends/onnxruntime/onnxruntime.js'
import { ModelInvalidError } from '../repository/errors.js'
import { toOrt } from '../backends/onnxruntime/onnx-session.js'
import { OrtModel } from '../backends/onnxruntime/ort-model.js'
import { packInputs } from '../backends/pack-inputs.js'
import { ProviderUnavailableError, type ProviderNote } from '../backends/onnxruntime/provider-notes.js'
import { deviceOf, oneShape } from '../backends/onnxruntime/providers.js'
import { warmUpError } from '../runtime/warm-up.js'
import type { Outgoing, WorkerBackend } from '../runtime/worker-runtime.js'
import type { OnnxType } from '../tensors/element-type.js'
import type { SizePx } from '../vision/letterbox.js'
import { nowMs } from '../lifecycle/clock.js'
import {
  type DetectorAnswer,
  type DetectorCandidate,
  type DetectorJob,
  type DetectorLoad,
  type DetectorReady,
  type FrameDetections,
  rowLength,
} from './detector-protocol.js'
import { type FrameGeometry, toSourceBox } from './frame-geometry.js'
import { FrameReader, type HeadOutput } from './frame-reader.js'
import type { Candidates } from './heads/candidates.js'
import { type HeadPlan, outputsOf } from './heads/head.js'
import { headValues } from './head-values.js'
import {
  elementType,
  frameElements,
  type InputPlan,
  inputShape,
  isFrameItself,
  type SizeInput,
  writeFrame,
} from './input-tensor.js'

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
    const { model, candidate, notes } = await openFirst(options.candidates)
    const loadedMs = nowMs()
    const detector = new LoadedDetector(model, { ...options, ...options.candidates[candidate]! })
    await detector.warmUp()
    await detector.runWarmUps()
    this.#loaded = detector
    return {
      candidate,
      provider: model.provider,
      notes,
      loadMs: loadedMs - beganMs,
      warmUpMs: nowMs() - loadedMs,
    }
  }

  async run(job: DetectorJob): Promise<Outgoing<DetectorAnswer>> {
    if (this.#loaded === undefined) throw new Error('run before load')
    const result = await this.#loaded.run(job)
    // Rows are few, and copied for less than a buffer costs to transfer.
    return { result, transfer: result.frames.map((frame) => frame.rgbHwc) }
  }

  async release(): Promise<void> {
    await this.#loaded?.model.release()
    this.#loaded = undefined
  }
}

/** @throws ProviderUnavailableError if no candidate runs, ModelInvalidError */
async function openFirst(
  candidates: readonly DetectorCandidate[],
): Promise<Readonly<{ model: OrtModel; candidate: number; notes: readonly ProviderNote[] }>> {
  const notes: ProviderNote[] = []
  for (const [candidate, { session, head }] of candidates.entries()) {
    try {
      const model = await OrtModel.open(session, {
        names: outputsOf(head),
        sizeIsKnown: head.kind !== 'end-to-end' && head.others === undefined,
      })
      return { model, candidate, notes: [...notes, ...model.notes] }
    } catch (error) {
      if (!(error instanceof ProviderUnavailableError)) throw error
      notes.push(...error.notes)
    }
  }
  throw new ProviderUnavailableError(notes)
}

type Typed = Readonly<{ type: OnnxType }>

class LoadedDetector {
  readonly #inputs = new Map<number, Float32Array | Uint8Array>()
  readonly #reader: FrameReader
  readonly #maxBatchSize: number
  /** Every batch is filled up to the largest. */
  readonly #filledUp: boolean

  constructor(
    readonly model: OrtModel,
    readonly options: DetectorLoad & DetectorCandidate,
  ) {
    this.#maxBatchSize = options.maxBatchSize[deviceOf(model.provider)]
    this.#filledUp = oneShape(model.provider)
    this.#reader = new FrameReader(options.head, options.input.size, options)
  }

  /** Runs on zeros, so that the first frame finds memory allocated and code compiled, and checks the real output shape. */
  async warmUp(): Promise<void> {
    const { widthPx, heightPx } = this.options.input.size
    const whole = { x: 0, y: 0, widthPx, heightPx }
    const geometry = { letterbox: { scale: 1, padXPx: 0, padYPx: 0 }, regionPx: whole, source: whole }
    for (const size of this.#filledUp ? [1] : new Set([1, this.#maxBatchSize])) {
      const frames = Array.from({ length: size }, () => ({
        rgbHwc: new ArrayBuffer(widthPx * heightPx * 3),
        geometry,
      }))
      await this.run({ frames })
    }
  }

  /** Runs what `model_warmup` asks for, in batches no larger than those of frames. @throws ModelConfigError */
  async runWarmUps(): Promise<void> {
    for (const { batch, count } of this.options.warmUps) {
      const fits = batch.slice(0, this.#maxBatchSize)
      while (this.#filledUp && this.options.batched && fits.length < this.#maxBatchSize) fits.push(batch[0]!)
      try {
        const { inputs } = await packInputs(fits, this.options.batched)
        const feeds = inputs.map((input) => {
          const { type } = this.model.session.inputMetadata.find(({ name }) => name === input.name) as Typed
          return { name: input.name, tensor: toOrt(input, type).tensor }
        })
        for (let run = 0; run < count; run++) await this.model.runOnce(feeds)
      } catch (error) {
        throw warmUpError(error)
      }
    }
  }

  async run({ frames }: DetectorJob): Promise<DetectorAnswer> {
    const startedMs = nowMs()
    const rows = this.#filledUp ? this.#maxBatchSize : frames.length
    const input = this.#fill(
      frames.map((frame) => frame.rgbHwc),
      rows,
    )
    const inputMs = nowMs() - startedMs
    const outputs = await this.#runModel(input, rows)
    let beganMs = nowMs()
    const inferMs = beganMs - startedMs
    const detections = frames.map(({ rgbHwc, geometry }, index): FrameDetections => {
      const { found, kept, belowFirst } = this.#reader.read(outputs, index)
      const rows = toRows(found, kept, geometry)
      const endedMs = nowMs()
      const postprocessMs = endedMs - beganMs
      beganMs = endedMs
      return { rgbHwc, rows, postprocessMs, belowFirst }
    })
    return { startedMs, inferMs, inputMs, frames: detections }
  }

  /**
   * The frames as an input of so many rows. Rows beyond them repeat the last: sums and extremes over the batch, as some quantised
   * models take them, see nothing that is not in the frames.
   */
  #fill(buffers: readonly ArrayBuffer[], rows: number): Float32Array | Uint8Array {
    const { input } = this.options
    const [only] = buffers
    if (rows === 1 && only !== undefined && isFrameItself(input)) return new Uint8Array(only)
    const data = this.#inputFor(rows)
    const size = frameElements(input)
    buffers.forEach((buffer, index) => writeFrame(input, buffer, data, index * size))
    for (let row = buffers.length; row < rows; row++)
      data.copyWithin(row * size, (buffers.length - 1) * size, buffers.length * size)
    return data
  }

  #inputFor(batchSize: number): Float32Array | Uint8Array {
    const known = this.#inputs.get(batchSize)
    if (known !== undefined) return known
    const length = batchSize * frameElements(this.options.input)
    const data =
      elementType(this.options.input.layout) === 'float32' ? new Float32Array(length) : new Uint8Array(length)
    this.#inputs.set(batchSize, data)
    return data
  }

  async #runModel(data: Float32Array | Uint8Array, batchSize: number): Promise<readonly HeadOutput[]> {
    const { input, head } = this.options
    const feeds = [{ name: input.name, tensor: imageTensor(input, data, batchSize) }]
    if (input.sizeInput !== undefined)
      feeds.push({ name: input.sizeInput.name, tensor: sizeTensor(input.sizeInput, input.size, batchSize) })
    const outputs = await this.model.run(feeds, batchSize)
    return outputsOf(head).map((name, index) => headOutput(head, index, name, outputs[name], batchSize))
  }
}

function imageTensor(input: InputPlan, data: Float32Array | Uint8Array, batchSize: number): ort.Tensor {
  const shape = inputShape(input, batchSize)
  if (data instanceof Float32Array) return new ort.Tensor('float32', data, shape)
  return elementType(input.layout) === 'int8'
    ? new ort.Tensor('int8', new Int8Array(data.buffer, data.byteOffset, data.length), shape)
    : new ort.Tensor('uint8', data, shape)
}

function sizeTensor(
  { type, order }: SizeInput,
  { widthPx, heightPx }: SizePx,
  batchSize: number,
): ort.Tensor {
  const one = order === 'wh' ? [widthPx, heightPx] : [heightPx, widthPx]
  const all = Array.from({ length: batchSize }, () => one).flat()
  const shape = [batchSize, 2]
  if (type === 'float32') return new ort.Tensor('float32', Float32Array.from(all), shape)
  return type === 'int32'
    ? new ort.Tensor('int32', Int32Array.from(all), shape)
    : new ort.Tensor('int64', BigInt64Array.from(all, BigInt), shape)
}

function headOutput(
  head: HeadPlan,
  index: number,
  name: string,
  output: ort.Tensor | undefined,
  batchSize: number,
): HeadOutput {
  if (output === undefined || (batchSize > 1 && output.dims[0] !== batchSize) || output.type === 'string')
    throw new ModelInvalidError(
      `output "${name}" is ${output === undefined ? 'missing' : `${output.type} [${output.dims.join(', ')}]`}, but [${batchSize}, ...] is expected`,
      'Export the model with a batch dimension that goes through to the output.',
    )
  const data = output.data
  if (data instanceof Float32Array) return { values: data, shape: output.dims }
  const { buffer, byteOffset, byteLength } = data as Uint8Array<ArrayBuffer>
  const own = buffer.slice(byteOffset, byteOffset + byteLength)
  return { values: headValues(own, output.type as OnnxType, head.quantised?.[index]), shape: output.dims }
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
