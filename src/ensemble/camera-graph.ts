import { ModelConfigError } from '../repository/errors.js'
import { RunHungError } from '../runtime/errors.js'
import { type CameraFrame, type CameraTensors, rowsOf } from './camera-tensors.js'
import type { FoundFrame, LaterResult, LaterSteps, StepFailures } from '../detector/later-steps.js'
import type { Log } from '../lifecycle/log.js'
import { nowMs } from '../lifecycle/clock.js'
import type { Attribute } from '../vision/detection.js'
import { rowLength } from '../detector/detector-protocol.js'
import { labelOf } from '../detector/heads/label-list.js'
import { attributesOf } from './attributes.js'
import type { EnsembleModel } from './ensemble-model.js'
import type { PartialRun, RunTime } from './run-ensemble.js'

export type CameraGraphOptions = Readonly<{
  /** Of the steps that run by themselves. */
  model: EnsembleModel
  tensors: CameraTensors
  /** Tensor with the boxes that are published. */
  detections: string
  /** Names of the classes of these boxes. */
  labels: readonly string[]
  /** Longest that steps behind the boxes may take for a frame. */
  stepTimeoutMs: number
  /** Longest that the boxes may take, where a step makes them. */
  runTimeoutMs: number
  log: Log
}>

/** Frames of one camera whose later steps run at once: the one that is awaited, and the next. */
const mostOfCamera = 2
const logEveryMs = 60_000
const attributeHint = 'Correct the step that writes it, or gantry.attributes of the ensemble.'

/** The steps of an ensemble that are not fused, as cameras run them. */
export class CameraGraph implements LaterSteps {
  readonly #inputs: readonly string[]
  readonly #ofCamera = new Map<string, number>()
  /** Steps of runs that were given up and have not ended. */
  readonly #stuck = new Map<string, number>()
  #failures = new Map<string, { failed: number; late: number }>()
  readonly #loggedMs = new Map<string, number>()
  #closed: Promise<void> | undefined

  constructor(readonly options: CameraGraphOptions) {
    this.#inputs = options.model.inputs.map(({ name }) => name)
  }

  async run(frame: FoundFrame): Promise<LaterResult> {
    const { cameraId, rows } = frame
    if (rows.length === 0) return { rows, attributes: [] }
    const underWay = this.#ofCamera.get(cameraId) ?? 0
    const [stuck] = this.#stuck.keys()
    if (stuck !== undefined || underWay >= mostOfCamera) {
      this.#failed(stuck ?? 'all', undefined)
      return { rows, attributes: [] }
    }
    this.#ofCamera.set(cameraId, underWay + 1)
    try {
      const run = await this.#run(frame, { withinMs: this.options.stepTimeoutMs })
      this.#book(run)
      return this.#result(frame, run.outputs) ?? { rows, attributes: [] }
    } finally {
      const left = (this.#ofCamera.get(cameraId) ?? 1) - 1
      if (left > 0) this.#ofCamera.set(cameraId, left)
      else this.#ofCamera.delete(cameraId)
    }
  }

  /**
   * Where the detector is one of the steps.
   *
   * @throws the error of the step for want of which there are no boxes
   */
  async detect(frame: Omit<FoundFrame, 'rows' | 'cameraId'>): Promise<LaterResult> {
    const { detections, runTimeoutMs, stepTimeoutMs } = this.options
    const found = { ...frame, rows: new Float32Array(0) }
    const { outputs, failures, ended } = await this.#run(found, {
      first: { output: detections, withinMs: runTimeoutMs },
      withinMs: stepTimeoutMs,
    })
    const result = this.#result(found, outputs)
    if (result === undefined) throw this.#withoutBoxes(outputs, failures)
    this.#book({ failures, ended })
    return result
  }

  /** Counted from the last time it was asked. */
  takeFailures(): readonly StepFailures[] {
    const failures = [...this.#failures].map(([step, counts]) => ({ step, ...counts }))
    this.#failures = new Map()
    return failures
  }

  stop(drainMs: number): Promise<void> {
    this.#closed ??= this.options.model.stop(drainMs)
    return this.#closed
  }

  #run(frame: CameraFrame, time: RunTime): Promise<PartialRun> {
    const { model, tensors } = this.options
    return model.inferPartly(tensors.of(frame, this.#inputs), time)
  }

  #book({ failures, ended }: Pick<PartialRun, 'failures' | 'ended'>): void {
    for (const [{ name }, error] of failures) {
      this.#failed(name, error)
      if (error === undefined) this.#isStuck(name, ended)
    }
  }

  #result({ geometry, rows }: CameraFrame, outputs: PartialRun['outputs']): LaterResult | undefined {
    const tensor = outputs.get(this.options.detections)
    const revised = tensor === undefined ? undefined : rowsOf(tensor, geometry)
    if (revised === undefined && rows.length === 0) return undefined
    const given = this.#attributes(outputs, revised?.boxes ?? rows)
    return {
      rows: revised?.rows ?? new Float32Array(rows),
      attributes: revised === undefined ? given : revised.kept.map((row) => given[row] ?? []),
    }
  }

  /** @param rows - as the steps were given or gave them. */
  #attributes(outputs: PartialRun['outputs'], rows: Float32Array): readonly (readonly Attribute[])[] {
    const { model, labels } = this.options
    if (model.attributes.length === 0) return []
    const boxes = Array.from({ length: rows.length / rowLength }, (_, row) => ({
      label: labelOf(labels, rows[row * rowLength]!) ?? '',
    }))
    return attributesOf(model.attributes, [...outputs.values()], boxes, (attribute, problem) =>
      this.#failed(
        attribute.output,
        new ModelConfigError(`output "${attribute.output}" ${problem}`, attributeHint),
      ),
    )
  }

  /** The error of the step that they wait for; others may have failed beside it. */
  #withoutBoxes(outputs: PartialRun['outputs'], failures: PartialRun['failures']): unknown {
    const { model, detections, runTimeoutMs } = this.options
    if (outputs.has(detections))
      return new ModelConfigError(
        `output "${detections}" has not the form of detections, FP32 [-1, 6]`,
        'Correct the step that writes it.',
      )
    const step = model.stepsOf(detections).find((each) => failures.has(each))
    const error = step && failures.get(step)
    return error ?? new RunHungError(step?.name ?? 'the detector', runTimeoutMs)
  }

  #isStuck(step: string, ended: Promise<unknown>): void {
    this.#stuck.set(step, (this.#stuck.get(step) ?? 0) + 1)
    void ended.then(() => {
      const left = (this.#stuck.get(step) ?? 1) - 1
      if (left > 0) this.#stuck.set(step, left)
      else this.#stuck.delete(step)
    })
  }

  /** Counts, and says it once a minute. @param error - `undefined` for one that is late */
  #failed(step: string, error: unknown): void {
    const counts = this.#failures.get(step) ?? { failed: 0, late: 0 }
    counts[error === undefined ? 'late' : 'failed'] += 1
    this.#failures.set(step, counts)
    const now = nowMs()
    if (now - (this.#loggedMs.get(step) ?? -Infinity) < logEveryMs) return
    this.#loggedMs.set(step, now)
    const { log, stepTimeoutMs } = this.options
    if (error === undefined)
      log.warn({ step, stepTimeoutMs }, 'step is late: boxes are published without what it says of them')
    else log.warn({ step, err: error }, 'step failed: boxes are published without what it says of them')
  }
}
