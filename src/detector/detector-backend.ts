import ort from '../backends/onnxruntime/onnxruntime.js'
import { ModelInvalidError } from '../repository/errors.js'
import { toOrt } from '../backends/onnxruntime/onnx-session.js'
import { ortTensor } from '../backends/onnxruntime/ort-tensor.js'
import { type OrtModel } from '../backends/onnxruntime/ort-model.js'
import { packInputs } from '../backends/pack-inputs.js'
import type { CardMemory } from '../backends/onnxruntime/card-memory.js'
import { deviceOf } from '../backends/onnxruntime/providers.js'
import { SizeRuns } from '../backends/onnxruntime/size-runs.js'
import type { SizeCost } from '../runtime/batch-sizes.js'
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
import { type Float16Comparison, isFasterInFloat16 } from './float16.js'
import { type FrameGeometry, toSourceBox } from './frame-geometry.js'
import { FrameReader, type HeadOutput } from './frame-reader.js'
import type { Candidates } from './heads/candidates.js'
import { type HeadPlan, outputsOf } from './heads/head.js'
import { headValues } from './head-values.js'
import { failureText, openFirst, type OpenedDetector, openThinned, openWhole } from './open-model.js'
import {
  elementType,
  frameElements,
  type InputPlan,
  inputShape,
  isFrameItself,
  type PixelArray,
  pixelArray,
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
    const { detector, misfit, candidate, notes, headRows, openedMs, float16 } = await openFaster(options)
    await detector.runWarmUps()
    const { provider, sessions } = detector.model
    const { leftOut, sizes } = sessions
    this.#loaded = detector
    return {
      candidate,
      ...(misfit !== undefined && { misfit }),
      ...(float16 && { float16 }),
      ...(sizes !== undefined && { sizes, sizeCosts: detector.sizeCosts }),
      ...(leftOut !== undefined && { sizesLeftOut: leftOut }),
      ...(headRows !== undefined && deviceOf(provider) === 'gpu' && { headRows }),
      provider,
      notes,
      loadMs: openedMs,
      warmUpMs: nowMs() - beganMs - openedMs,
    }
  }

  async run(job: DetectorJob): Promise<Outgoing<DetectorAnswer>> {
    if (this.#loaded === undefined) throw new Error('run before load')
    const { warms } = job
    if (warms !== undefined) return { result: await this.#loaded.warm(warms), transfer: [] }
    const result = await this.#loaded.run(job)
    // Rows are few, and copied for less than a buffer costs to transfer.
    return { result, transfer: result.frames.map((frame) => frame.rgbHwc) }
  }

  async release(): Promise<void> {
    await this.#loaded?.model.release()
    this.#loaded = undefined
  }
}

type Warm = Omit<OpenedDetector, 'model' | 'head' | 'memory'> &
  Readonly<{ detector: LoadedDetector; misfit?: string }>

/** The first detector that runs; of one that stands in float32 and in float16, whichever is faster. */
async function openFaster(options: DetectorLoad): Promise<Warm & Readonly<{ float16?: Float16Comparison }>> {
  const own = await openWarm(options)
  const candidate = own.candidate + 1
  const float16 = options.candidates[candidate]
  const { provider, sessions } = own.detector.model
  const size = sessions.sizes?.at(-1)
  if (float16?.isFloat16 !== true || size === undefined) return own
  const ms = await own.detector.timeOf(size)
  let other: Warm | undefined
  try {
    const session = { ...float16.session, providers: [provider] }
    other = await openWarm({ ...options, candidates: [{ ...float16, session }] })
    const comparison = { size, ms, float16Ms: await other.detector.timeOf(size) }
    const isFaster = isFasterInFloat16(comparison)
    await (isFaster ? own : other).detector.model.release()
    if (!isFaster) return { ...own, float16: comparison }
    return { ...other, candidate, notes: own.notes, float16: comparison }
  } catch (error) {
    await other?.detector.model.release()
    return { ...own, float16: { size, ms, reason: failureText(error) } }
  }
}

/**
 * The first detector that runs. Its graph chooses the best rows of its head where it can; the head is read whole where it does not run so.
 *
 * @throws ProviderUnavailableError if no candidate runs, ModelInvalidError
 */
async function openWarm(options: DetectorLoad): Promise<Warm> {
  const opened = await openFirst(options, openThinned)
  try {
    return await warmedUp(opened, options)
  } catch (error) {
    await opened.model.release()
    if (typeof opened.headRows !== 'number') throw error
    return {
      ...(await warmedUp(await openFirst(options, openWhole), options)),
      headRows: failureText(error),
    }
  }
}

type Typed = Readonly<{ type: OnnxType }>
type DetectorOptions = DetectorLoad & DetectorCandidate

/** The detector at the size of its input, or, where the model does not run at that, at its exported size and why. */
async function warmedUp(opened: OpenedDetector, load: DetectorLoad): Promise<Warm> {
  const { model, head, memory, ...told } = opened
  const options = { ...load, ...load.candidates[opened.candidate]!, head }
  const { exportedSize, input } = options
  const detector = new LoadedDetector(model, options, memory)
  try {
    await detector.warmUp()
    return { ...told, detector }
  } catch (error) {
    if (exportedSize === undefined) throw error
    const { exportedSize: _, ...others } = options
    const own = { ...others, input: { ...input, size: exportedSize } }
    const exported = new LoadedDetector(await model.reopened(), own, memory)
    await exported.warmUp()
    return { ...told, detector: exported, misfit: failureText(error) }
  }
}

class LoadedDetector {
  readonly #inputs = new Map<number, PixelArray>()
  readonly #reader: FrameReader
  readonly #maxBatchSize: number
  /** Rows of the runs there were. */
  readonly #known = new Set<number>()
  /** Where sessions take one size each: those that are warm, ascending. */
  readonly sizeCosts: SizeCost[] = []
  /** Where sessions take one size each: those that have run. */
  readonly #sizeRuns: SizeRuns

  constructor(
    readonly model: OrtModel,
    readonly options: DetectorOptions,
    /** Of the card, where what the model takes of it is to be known. */
    memory: CardMemory | undefined,
  ) {
    this.#sizeRuns = new SizeRuns(model.sessions, memory)
    this.#maxBatchSize = options.maxBatchSize[deviceOf(model.provider)]
    const isNewSize = options.exportedSize !== undefined
    this.#reader = new FrameReader(options.head, options.input.size, options, isNewSize)
  }

  /**
   * Runs on zeros, so that the first frame finds memory allocated and code compiled, and checks the real output shape. Where sessions take
   * one size each, the first of them is run.
   */
  async warmUp(): Promise<void> {
    const { sizes } = this.model.sessions
    if (sizes === undefined)
      for (const size of new Set([1, this.#maxBatchSize])) await this.run(this.#zeros(size))
    else for (const size of sizes.slice(0, 1)) await this.warm(size)
  }

  /** Runs a size for the first time, and then to see what that takes: the shortest of a few. @param size - above those that are warm. */
  async warm(size: number): Promise<DetectorAnswer> {
    const beganMs = nowMs()
    const sizeCost = await this.#sizeRuns.costOf(size, () => this.run(this.#zeros(size), size))
    this.sizeCosts.push(sizeCost)
    return { startedMs: beganMs, inferMs: nowMs() - beganMs, inputMs: 0, frames: [], sizeCost }
  }

  /** What a run of a size takes, once it has run. */
  timeOf(size: number): Promise<number> {
    return this.#sizeRuns.timeOf(size, () => this.run(this.#zeros(size), size))
  }

  #zeros(frames: number): DetectorJob {
    const { widthPx, heightPx } = this.options.input.size
    const whole = { x: 0, y: 0, widthPx, heightPx }
    const geometry = { letterbox: { scale: 1, padXPx: 0, padYPx: 0 }, regionPx: whole, source: whole }
    const bytes = widthPx * heightPx * 3
    return {
      frames: Array.from({ length: frames }, () => ({ rgbHwc: new ArrayBuffer(bytes), geometry })),
    }
  }

  /** Runs what `model_warmup` asks for, in batches no larger than those of frames. @throws ModelConfigError */
  async runWarmUps(): Promise<void> {
    for (const { batch, count } of this.options.warmUps) {
      const fits = batch.slice(0, this.#maxBatchSize)
      const rows = this.options.batched ? this.#sizeRuns.rowsFor(fits.length) : 1
      while (fits.length < rows) fits.push(batch[0]!)
      try {
        const { inputs } = await packInputs(fits, this.options.batched)
        const feeds = inputs.map((input) => {
          const { type } = this.model.session.inputMetadata.find(({ name }) => name === input.name) as Typed
          return { name: input.name, tensor: toOrt(input, type).tensor }
        })
        for (let run = 0; run < count; run++) await this.model.runOnce(feeds, rows)
      } catch (error) {
        throw warmUpError(error)
      }
    }
  }

  /** @param rows - that the frames are filled up to; by default of a size that has run, unless none of these is large enough. */
  async run({ frames }: DetectorJob, rows = this.#sizeRuns.rowsFor(frames.length)): Promise<DetectorAnswer> {
    const startedMs = nowMs()
    const input = this.#fill(
      frames.map((frame) => frame.rgbHwc),
      rows,
    )
    const inputMs = nowMs() - startedMs
    const outputs = await this.#runModel(input, rows)
    let beganMs = nowMs()
    const inferMs = beganMs - startedMs
    const detections = frames.map(({ rgbHwc, geometry }, index): FrameDetections => {
      const { found, kept, ...doubts } = this.#reader.read(outputs, index)
      const rows = toRows(found, kept, geometry)
      const endedMs = nowMs()
      const postprocessMs = endedMs - beganMs
      beganMs = endedMs
      return { rgbHwc, rows, postprocessMs, ...doubts }
    })
    const answer = { startedMs, inferMs, inputMs, frames: detections }
    if (this.#known.has(rows)) return answer
    this.#known.add(rows)
    return { ...answer, shapes: 'first' }
  }

  /**
   * The frames as an input of so many rows. Rows beyond them repeat the last: sums and extremes over the batch, as some quantised
   * models take them, see nothing that is not in the frames.
   */
  #fill(buffers: readonly ArrayBuffer[], rows: number): PixelArray {
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

  #inputFor(batchSize: number): PixelArray {
    const known = this.#inputs.get(batchSize)
    if (known !== undefined) return known
    const length = batchSize * frameElements(this.options.input)
    const Elements = pixelArray(this.options.input.layout)
    const memory = this.model.memory(batchSize, length * Elements.BYTES_PER_ELEMENT)
    const data = new Elements(memory, 0, length)
    this.#inputs.set(batchSize, data)
    return data
  }

  async #runModel(data: PixelArray, batchSize: number): Promise<readonly HeadOutput[]> {
    const { input, head } = this.options
    const feeds = [{ name: input.name, tensor: imageTensor(input, data, batchSize) }]
    if (input.sizeInput !== undefined)
      feeds.push({ name: input.sizeInput.name, tensor: sizeTensor(input.sizeInput, input.size, batchSize) })
    const outputs = await this.model.run(feeds, batchSize)
    return outputsOf(head).map((name, index) => headOutput(head, index, name, outputs[name], batchSize))
  }
}

function imageTensor(input: InputPlan, data: PixelArray, batchSize: number): ort.Tensor {
  const shape = inputShape(input, batchSize)
  const type = elementType(input.layout)
  return type === 'int8'
    ? new ort.Tensor(type, new Int8Array(data.buffer, data.byteOffset, data.length), shape)
    : ortTensor(type, data, shape)
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
