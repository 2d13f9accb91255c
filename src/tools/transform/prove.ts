import ort from '../../backends/onnxruntime/onnxruntime.js'
import { ortTensor } from '../../backends/onnxruntime/ort-tensor.js'
import { toSourceBox } from '../../detector/frame-geometry.js'
import { FrameReader } from '../../detector/frame-reader.js'
import { outputsOf } from '../../detector/heads/head.js'
import { inputShape, pixelArray } from '../../detector/input-tensor.js'
import type { BoxPx } from '../../vision/detection.js'
import { outputNumbers } from '../split/compare-stages.js'
import { randomInputs } from '../split/random-inputs.js'
import { type FedPicture, feed, pictureAt, type Pictures } from './frames.js'
import type { DraftPlan } from './model-draft.js'
import { ModelTransformError } from './transform-error.js'

/** How far an output is from the original's. */
export type OutputDifference = Readonly<{
  name: string
  /** Largest difference of an element, and the same divided by the largest value of the output. */
  largest: number
  largestRelative: number
  /** Root mean square of the differences, divided by that of the values. */
  rmsRelative: number
}>

/** Detections of both models beside each other: the same where the class is the same and boxes overlap by half. */
export type Agreement = Readonly<{ original: number; transformed: number; same: number; agreement: number }>

/** What a step was measured by, and by how much it may be off. */
export type Proof = Readonly<{
  /** What was compared on: `16 pictures of ...`, or random inputs. */
  on: string
  outputs: readonly OutputDifference[]
  detections?: Agreement
  /** Which of the figures the tolerance is for. */
  by: 'largest relative difference' | 'relative root mean square' | 'detections that differ'
  measured: number
  tolerance: number
}>

/** When a detection counts in a proof: the usual thresholds of cameras. */
const limits = { scoreThreshold: 0.3, iouThreshold: 0.5, maxDetections: 300 }

/** Random inputs of models that take no picture. */
const randomRuns = 4

export type Side = Readonly<{ path: string; plan: DraftPlan }>

/**
 * Runs both models on the same pictures and compares what they say.
 *
 * @param by - where both have a head whose detections can be compared, and that is asked for; else outputs are, by their root mean square.
 * @throws ModelTransformError where they are further apart than `tolerance`; with the sentence of ONNX Runtime where one does not run
 */
export async function prove(
  step: string,
  original: Side,
  transformed: Side,
  pictures: Pictures,
  by: Proof['by'],
  tolerance: number,
): Promise<Proof> {
  const before = await Runner.open(original, step)
  const after = await Runner.open(transformed, step)
  try {
    const sums = new Sums(batchOf(original), batchOf(transformed))
    const random = original.plan.picture === undefined
    const count = random ? randomRuns : pictures.paths.length
    for (let at = 0; at < count; at++) {
      const given: Given = random
        ? { tensors: randomInputs(original.plan.onnx.inputs, 1, at + 1) }
        : { picture: await pictureAt(pictures.paths[at]!) }
      const expected = await before.run(given)
      const found = await after.run(given)
      sums.add(expected, found)
    }
    const proof = sums.proof(random ? `${count} random inputs` : pictures.from, by, tolerance)
    if (proof.measured <= tolerance) return proof
    throw new ModelTransformError(
      `${step} changes what the model says: ${proof.by} ${proof.measured.toPrecision(3)} on ${proof.on}, ${tolerance} is allowed`,
      by === 'detections that differ'
        ? 'Give pictures like those of your cameras by --frames; if that is as good as it gets, allow more with --tolerance.'
        : 'If that is close enough for you, allow more with --tolerance.',
    )
  } finally {
    await Promise.all([before.release(), after.release()])
  }
}

type Detected = Readonly<{ box: BoxPx; label: string; score: number }>
type Said = Readonly<{
  outputs: Readonly<Record<string, ort.Tensor>>
  detections: readonly Detected[] | undefined
}>

type Tensors = Readonly<Record<string, ort.Tensor>>
/** The same for both models. */
type Given = Readonly<{ picture: Parameters<typeof feed>[1] } | { tensors: Tensors }>

/** One of the two models. */
class Runner {
  private constructor(
    readonly side: Side,
    readonly session: ort.InferenceSession,
    readonly reader: FrameReader | undefined,
    readonly step: string,
  ) {}

  static async open(side: Side, step: string): Promise<Runner> {
    const { picture, detector } = side.plan
    const reader =
      picture === undefined || detector === undefined
        ? undefined
        : new FrameReader(detector.head, picture.plan.size, limits)
    try {
      const session = await ort.InferenceSession.create(side.path, { logSeverityLevel: 4 })
      return new Runner(side, session, reader, step)
    } catch (error) {
      throw doesNotRun(step, error)
    }
  }

  async run(given: Given): Promise<Said> {
    const { plan } = this.side
    const fed = 'picture' in given ? await feed(plan.picture!.plan, given.picture) : undefined
    const inputs = 'tensors' in given ? this.#rows(given.tensors) : this.#inputs(fed!)
    try {
      const outputs = await this.session.run(inputs)
      return { outputs, detections: fed === undefined ? undefined : this.#detections(outputs, fed) }
    } catch (error) {
      throw doesNotRun(this.step, error)
    }
  }

  async release(): Promise<void> {
    await this.session.release()
  }

  /** As many rows as it takes, of those that the original gets: all of them in turn, or the first. */
  #rows(given: Tensors): Tensors {
    const batch = batchOf(this.side)
    return Object.fromEntries(
      Object.entries(given).map(([name, tensor]) => {
        const [rows = batch, ...row] = tensor.dims
        if (rows === batch) return [name, tensor]
        const data = tensor.data as Float32Array
        const length = (data.length / rows) * batch
        const values = new (data.constructor as Float32ArrayConstructor)(length)
        for (let at = 0; at < length; at++) values[at] = data[at % data.length]!
        return [name, ortTensor(tensor.type, values, [batch, ...row])]
      }),
    )
  }

  /** The picture in every place of a batch of fixed size. */
  #inputs({ values }: FedPicture): Tensors {
    const { plan, tensor } = this.side.plan.picture!
    const count = batchOf(this.side)
    const all = new (pixelArray(plan.layout))(values.length * count)
    for (let at = 0; at < count; at++) all.set(values, at * values.length)
    const feeds = { [plan.name]: ortTensor(tensor.type as ort.Tensor.Type, all, inputShape(plan, count)) }
    if (plan.sizeInput === undefined) return feeds
    const { name, type, order } = plan.sizeInput
    const { widthPx, heightPx } = plan.size
    const sizes = order === 'wh' ? [widthPx, heightPx] : [heightPx, widthPx]
    const data =
      type === 'int64'
        ? BigInt64Array.from(sizes, BigInt)
        : type === 'int32'
          ? Int32Array.from(sizes)
          : Float32Array.from(sizes)
    return { ...feeds, [name]: new ort.Tensor(type, data, [1, 2]) }
  }

  #detections(outputs: Said['outputs'], { geometry }: FedPicture): readonly Detected[] | undefined {
    const { detector } = this.side.plan
    if (detector === undefined || this.reader === undefined) return undefined
    const read = outputsOf(detector.head).map((name) => {
      const output = outputs[name]!
      return { values: outputNumbers(output) as Float32Array, shape: output.dims }
    })
    const { found, kept } = this.reader.read(read, 0)
    return kept.flatMap((index) => {
      const [x1 = 0, y1 = 0, x2 = 0, y2 = 0] = found.boxes.subarray(index * 4, index * 4 + 4)
      const box = toSourceBox(x1, y1, x2, y2, geometry)
      const classId = found.classes[index]!
      return box === undefined
        ? []
        : [{ box, label: detector.labels[classId] ?? `class_${classId}`, score: found.scores[index]! }]
    })
  }
}

/** Rows that a model takes at once; 1 where that is free. */
export function batchOf({ plan }: Side): number {
  const [batch] = (plan.picture?.tensor ?? plan.onnx.inputs[0])?.shape ?? []
  return typeof batch === 'number' ? batch : 1
}

function doesNotRun(step: string, error: unknown): ModelTransformError {
  const reason = (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? ''
  return new ModelTransformError(
    `the model does not run, before or after ${step}: ${reason}`,
    'Look at the model with `gantry models inspect`; if the original runs, leave the step out and report it.',
    error,
  )
}

type OutputSums = { largest: number; scale: number; squares: number; values: number; comparable: boolean }

/** Differences over all runs of two models that take so many rows. */
class Sums {
  readonly #outputs = new Map<string, OutputSums>()
  readonly #detections = { original: 0, transformed: 0, same: 0 }

  constructor(
    readonly expectedRows: number,
    readonly foundRows: number,
  ) {}

  add(expected: Said, found: Said): void {
    for (const [name, output] of Object.entries(expected.outputs))
      this.#addOutput(name, output, found.outputs[name])
    if (expected.detections === undefined || found.detections === undefined) return
    this.#detections.original += expected.detections.length
    this.#detections.transformed += found.detections.length
    this.#detections.same += sameDetections(expected.detections, found.detections)
  }

  #addOutput(name: string, expected: ort.Tensor, found: ort.Tensor | undefined): void {
    const sums = this.#outputs.get(name) ?? {
      largest: 0,
      scale: 1e-12,
      squares: 0,
      values: 1e-24,
      comparable: true,
    }
    this.#outputs.set(name, sums)
    if (found === undefined || !this.#areAlike(expected.dims, found.dims)) {
      sums.comparable = false
      return
    }
    const [a, b] = [outputNumbers(expected), outputNumbers(found)]
    for (let i = 0; i < b.length; i++) {
      const value = Number(a[i % a.length])
      const difference = Math.abs(value - Number(b[i]))
      // Both are no number, or the same infinity.
      if (Number.isNaN(difference) && Object.is(value, Number(b[i]))) continue
      sums.largest = Math.max(sums.largest, Number.isNaN(difference) ? Infinity : difference)
      sums.scale = Math.max(sums.scale, Math.abs(value))
      sums.squares += difference ** 2
      sums.values += value ** 2
    }
  }

  /** But for the rows that each model takes. */
  #areAlike([rows = 1, ...row]: readonly number[], [otherRows = 1, ...otherRow]: readonly number[]): boolean {
    return row.join() === otherRow.join() && rows * this.foundRows === otherRows * this.expectedRows
  }

  proof(on: string, asked: Proof['by'], tolerance: number): Proof {
    const outputs = [...this.#outputs]
      .filter(([, { comparable }]) => comparable)
      .map(([name, { largest, scale, squares, values }]) => ({
        name,
        largest,
        largestRelative: largest / scale,
        rmsRelative: Math.sqrt(squares / values),
      }))
    const { original, transformed, same } = this.#detections
    // Pictures that show nothing prove nothing.
    const compared = original + transformed > 0
    const agreement = (2 * same) / (original + transformed)
    const by = asked === 'detections that differ' && !compared ? 'relative root mean square' : asked
    const largest = (of: (output: OutputDifference) => number) =>
      outputs.length < this.#outputs.size
        ? Infinity
        : outputs.reduce((most, output) => Math.max(most, of(output)), 0)
    return {
      on,
      outputs,
      ...(compared ? { detections: { original, transformed, same, agreement } } : {}),
      by,
      measured:
        by === 'detections that differ'
          ? 1 - agreement
          : largest(
              by === 'relative root mean square'
                ? (each) => each.rmsRelative
                : (each) => each.largestRelative,
            ),
      tolerance,
    }
  }
}

/** Pairs of one class that overlap by half, each detection in one pair at most, best ones first. */
function sameDetections(a: readonly Detected[], b: readonly Detected[]): number {
  const free = new Set(b)
  let same = 0
  for (const one of a) {
    const other = [...free].find(({ box, label }) => label === one.label && overlap(one.box, box) >= 0.5)
    if (other === undefined) continue
    free.delete(other)
    same += 1
  }
  return same
}

function overlap(a: BoxPx, b: BoxPx): number {
  const width = Math.min(a.x2, b.x2) - Math.max(a.x1, b.x1)
  const height = Math.min(a.y2, b.y2) - Math.max(a.y1, b.y1)
  if (width <= 0 || height <= 0) return 0
  const area = ({ x1, y1, x2, y2 }: BoxPx) => (x2 - x1) * (y2 - y1)
  return (width * height) / (area(a) + area(b) - width * height)
}
