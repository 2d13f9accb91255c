import { createHash } from 'node:crypto'
import { nowMs } from '../lifecycle/clock.js'
import { atMost } from '../lifecycle/delay.js'
import type { ModelConfig } from '../repository/model-config.js'
import type { InferRequest } from '../runtime/infer.js'
import type { LoadedModel } from '../runtime/loaded-model.js'
import { checkRequest, type RequestRules, requestRules } from '../runtime/check-request.js'
import { outputShapes } from '../runtime/output-shapes.js'
import { backendError } from '../runtime/request-outcome.js'
import { ServingError } from '../tensors/serving-error.js'
import type { StatisticsRecorder } from '../runtime/statistics-recorder.js'
import type { ExecutionTimes, ModelStatistics } from '../runtime/statistics.js'
import type { Tensor, TensorSpec } from '../tensors/tensor.js'
import { type AttributePlan, planAttributes } from './attributes.js'
import type { EnsemblePlan } from './ensemble-plan.js'
import { type PartialRun, runEnsemble, runPartly, type RunTime, stepsFor } from './run-ensemble.js'
import type { PlannedStep } from './step-model.js'
import { StepGate } from './step-gate.js'

export type EnsembleParts = Readonly<{
  name: string
  version: string
  config: ModelConfig
  plan: EnsemblePlan
  /** Of outputs that have labels of their own in the configuration. */
  labels: ReadonlyMap<string, readonly string[]>
  /** Built-in steps that belong to this ensemble and end with it. */
  ownSteps: readonly LoadedModel[]
  /** Created when the load began. */
  statistics: StatisticsRecorder
}>

/** A graph of models that answers as one. */
export class EnsembleModel implements LoadedModel {
  readonly platform = 'ensemble'
  readonly name: string
  readonly version: string
  readonly config: ModelConfig
  readonly inputs: readonly TensorSpec[]
  readonly outputs: readonly TensorSpec[]
  /** Outputs that are attributes of the boxes. */
  readonly attributes: AttributePlan
  readonly #rules: RequestRules
  readonly #reshape: (tensor: Tensor) => Tensor
  readonly #gates: ReadonlyMap<PlannedStep, StepGate>
  readonly #running = new Set<Promise<unknown>>()
  #closed: Promise<void> | undefined

  /** @throws ModelConfigError where `gantry.attributes` names what cannot be one. */
  constructor(readonly parts: EnsembleParts) {
    const { name, version, config, plan } = parts
    this.name = name
    this.version = version
    this.config = config
    this.inputs = plan.inputs
    this.outputs = plan.outputs
    this.attributes = planAttributes(name, config, plan, (output) => this.labels(output))
    this.#rules = requestRules(name, config)
    this.#reshape = outputShapes(config)
    const limit = config.ensemble_scheduling?.max_inflight_requests ?? 0
    this.#gates = new Map(plan.steps.map((step) => [step, new StepGate(limit)]))
  }

  /** Counts the requests of the ensemble; its steps count their own. */
  get recorder(): StatisticsRecorder {
    return this.parts.statistics
  }

  /** Built-in steps that are part of this ensemble and of no other. */
  get ownSteps(): readonly LoadedModel[] {
    return this.parts.ownSteps
  }

  get rowsPerBox(): readonly string[] {
    const { boxRows, outputs } = this.parts.plan
    return outputs.flatMap(({ name }) => (boxRows.has(name) ? [name] : []))
  }

  /** Those of the configuration, else those of the step that writes the output. */
  labels(output: string): readonly string[] {
    const own = this.parts.labels.get(output)
    if (own !== undefined) return own
    const step = this.parts.plan.writers.get(output)
    const tensor = step?.outputs.find(([, name]) => name === output)?.[0]
    return step === undefined || tensor === undefined ? [] : step.model.labels(tensor)
  }

  /** Steps that an output waits for, in the order in which they run. */
  stepsOf(output: string): readonly PlannedStep[] {
    return stepsFor(this.parts.plan, [output])
  }

  statistics(): ModelStatistics {
    return this.parts.statistics.statistics()
  }

  /** That of the versions that its steps would run now: a newer one takes over without a reload of the ensemble. */
  async generation(): Promise<string> {
    const { config, plan } = this.parts
    const steps = await Promise.all(plan.steps.map(({ model }) => model.current().generation()))
    return createHash('sha256')
      .update(JSON.stringify([config, steps]))
      .digest('base64url')
  }

  async infer(request: InferRequest): Promise<readonly Tensor[]> {
    if (this.#closed !== undefined)
      throw new ServingError('UNAVAILABLE', `Request for unknown model: '${this.name}' is not ready`)
    const beganMs = nowMs()
    const run = this.#run(request, beganMs)
    this.#running.add(run)
    try {
      return await run
    } catch (error) {
      const failure = backendError(error)
      this.parts.statistics.recordFailure(failure.reason, sinceNs(beganMs))
      throw failure
    } finally {
      this.#running.delete(run)
    }
  }

  /**
   * Runs its steps as far as they go, for whoever can do with less: a camera keeps its boxes when a step behind them fails. Never rejects.
   *
   * @param inputs - of the plan; they are not checked.
   */
  async inferPartly(inputs: readonly Tensor[], time: RunTime): Promise<PartialRun> {
    const request: InferRequest = {
      model: this.name,
      version: this.version,
      id: '',
      inputs,
      outputs: [],
      priority: 0,
      timeoutUs: 0,
      sequence: undefined,
      parameters: {},
      signal: undefined,
    }
    const names = this.outputs.map(({ name }) => name)
    const run = runPartly(this.parts.plan, this.#gates, request, names, time)
    this.#running.add(run)
    try {
      return await run
    } finally {
      this.#running.delete(run)
    }
  }

  stop(drainMs: number): Promise<void> {
    this.#closed ??= this.#close(drainMs)
    return this.#closed
  }

  /** As Triton counts: compute times are the sums over the steps, whose queues are in none of them. */
  async #run(request: InferRequest, beganMs: number): Promise<readonly Tensor[]> {
    const { statistics } = this.parts
    const { inputs, outputs, batchSize } = checkRequest(request, this.#rules)
    const startedMs = nowMs()
    request.trace?.at('QUEUE_START', startedMs)
    const times = { computeInputNs: 0, computeInferNs: 0, computeOutputNs: 0 }
    const onRun = (step: ExecutionTimes) => {
      times.computeInputNs += step.computeInputNs
      times.computeInferNs += step.computeInferNs
      times.computeOutputNs += step.computeOutputNs
    }
    const tensors = await this.#steps({ ...request, inputs: [...inputs.values()], onRun }, outputs)
    statistics.recordExecution(batchSize, times)
    statistics.recordSuccess(batchSize, sinceNs(beganMs), (startedMs - beganMs) * 1e6, times)
    request.onRun?.(times)
    return tensors.map(this.#reshape)
  }

  /** A failure says which ensemble it was in, as Triton's do, and counts as none of the ensemble's backend. */
  async #steps(request: InferRequest, outputs: readonly string[]): Promise<readonly Tensor[]> {
    try {
      return await runEnsemble(this.parts.plan, this.#gates, request, outputs)
    } catch (error) {
      const { status, message } = backendError(error)
      const reason = request.signal?.aborted === true ? 'CANCELED' : 'OTHER'
      throw new ServingError(status, `in ensemble '${this.name}', ${message}`, reason, error)
    }
  }

  async #close(drainMs: number): Promise<void> {
    await atMost(drainMs, Promise.allSettled([...this.#running]))
    await Promise.all(this.parts.ownSteps.map((step) => step.stop(drainMs)))
  }
}

function sinceNs(beganMs: number): number {
  return Math.round((nowMs() - beganMs) * 1e6)
}
