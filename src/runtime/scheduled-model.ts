import { join } from 'node:path'
import { nowMs } from '../lifecycle/clock.js'
import { atMost } from '../lifecycle/delay.js'
import type { OpenedModel } from './backend.js'
import type { InferRequest } from './infer.js'
import type { LoadedModel } from './loaded-model.js'
import { modelGeneration } from '../repository/model-generation.js'
import { ServingError } from '../tensors/serving-error.js'
import type { ModelStatistics } from './statistics.js'
import type { StatisticsRecorder } from './statistics-recorder.js'
import type { Tensor } from '../tensors/tensor.js'
import {
  type CheckedRequest,
  checkRequest,
  isLongUnchecked,
  type RequestRules,
  withStringsChecked,
} from './check-request.js'
import type { ModelInstances } from './instance-group.js'
import { PendingRequest } from './pending-request.js'
import { backendError, cancelledError, type RequestOutcome } from './request-outcome.js'

/** Decides which requests run when. Every request it is offered settles, unless it is given back by {@link clear}. */
export interface Scheduler {
  /** Requests that have not started. */
  readonly waiting: number
  offer(pending: PendingRequest): void
  /** An instance may have become idle. */
  pump(): void
  /** Gives back everything that waits. */
  clear(): readonly PendingRequest[]
}

export type ScheduledModelParts = Readonly<{
  name: string
  version: string
  opened: OpenedModel
  /** `<repository>/<model>`; the files of the version are below it. */
  modelDir: string
  rules: RequestRules
  labels: ReadonlyMap<string, readonly string[]>
  instances: ModelInstances
  scheduler: Scheduler
  outcome: RequestOutcome
  statistics: StatisticsRecorder
  /** Resolves with the reason once no instance is started any more. */
  broken: Promise<string>
}>

/** A model whose requests are checked, queued and run on its instances. */
export class ScheduledModel implements LoadedModel {
  readonly #inFlight = new Set<Promise<unknown>>()
  #closed: Promise<void> | undefined
  #generation: Promise<string> | undefined
  #brokenBecause: string | undefined

  constructor(readonly parts: ScheduledModelParts) {
    void parts.broken.then((reason) => this.#break(reason))
  }

  get name(): string {
    return this.parts.name
  }

  get version(): string {
    return this.parts.version
  }

  get config(): LoadedModel['config'] {
    return this.parts.opened.config
  }

  get platform(): string {
    return this.parts.opened.platform
  }

  get onGpu(): boolean {
    return this.parts.opened.onGpu?.() ?? false
  }

  get sizes(): LoadedModel['sizes'] {
    return this.parts.instances.sizes
  }

  get inputs(): LoadedModel['inputs'] {
    return this.parts.opened.inputs
  }

  get outputs(): LoadedModel['outputs'] {
    return this.parts.opened.outputs
  }

  /** Counts what the model does; a response cache in front of it counts its hits and misses here too. */
  get recorder(): StatisticsRecorder {
    return this.parts.statistics
  }

  labels(output: string): readonly string[] {
    return this.parts.labels.get(output) ?? []
  }

  get broken(): Promise<string> {
    return this.parts.broken
  }

  statistics(): ModelStatistics {
    return this.parts.statistics.statistics(this.parts.opened.gpuMemory?.())
  }

  generation(): Promise<string> {
    this.#generation ??= modelGeneration(this.config, join(this.parts.modelDir, this.version))
    return this.#generation
  }

  infer(request: InferRequest): Promise<readonly Tensor[]> {
    return request.inputs.some(isLongUnchecked) ? this.#inferLong(request) : this.#infer(request, nowMs())
  }

  async #inferLong(request: InferRequest): Promise<readonly Tensor[]> {
    const enqueuedMs = nowMs()
    let checked: InferRequest
    try {
      checked = await withStringsChecked(request)
    } catch (error) {
      const refusal = request.signal?.aborted === true ? cancelledError({ request }) : error
      throw this.#refused(refusal, enqueuedMs)
    }
    return this.#infer(checked, enqueuedMs)
  }

  #infer(request: InferRequest, enqueuedMs: number): Promise<readonly Tensor[]> {
    let checked: CheckedRequest
    try {
      checked = this.#admit(request)
    } catch (error) {
      return Promise.reject(this.#refused(error, enqueuedMs))
    }
    const answer = new Promise<readonly Tensor[]>((resolve, reject) =>
      this.parts.scheduler.offer(new PendingRequest(request, checked, enqueuedMs, resolve, reject)),
    )
    this.#inFlight.add(answer)
    const forget = () => this.#inFlight.delete(answer)
    answer.then(forget, forget)
    return answer
  }

  stop(drainMs: number): Promise<void> {
    this.#closed ??= this.#close(drainMs)
    return this.#closed
  }

  #refused(error: unknown, enqueuedMs: number): ServingError {
    const refusal = backendError(error)
    this.parts.statistics.recordFailure(refusal.reason, (nowMs() - enqueuedMs) * 1e6)
    return refusal
  }

  #admit(request: InferRequest): CheckedRequest {
    if (this.#closed !== undefined) throw this.#unloading()
    if (this.#brokenBecause !== undefined) throw this.#unavailable(this.#brokenBecause)
    if (request.signal?.aborted === true) throw cancelledError({ request })
    return checkRequest(request, this.parts.rules)
  }

  #break(reason: string): void {
    this.#brokenBecause = reason
    const { scheduler, outcome } = this.parts
    for (const pending of scheduler.clear()) outcome.fail(pending, this.#unavailable(reason))
  }

  async #close(drainMs: number): Promise<void> {
    const { scheduler, instances, outcome, opened } = this.parts
    const untilMs = nowMs() + drainMs
    await atMost(drainMs, Promise.allSettled(this.#inFlight))
    for (const pending of scheduler.clear()) outcome.fail(pending, this.#unloading())
    await instances.stop(Math.max(1_000, untilMs - nowMs()))
    await atMost(1_000, Promise.allSettled(this.#inFlight))
    await opened.close()
  }

  #unloading(): ServingError {
    return new ServingError('UNAVAILABLE', `model '${this.name}' version ${this.version} is unloading`)
  }

  #unavailable(reason: string): ServingError {
    return new ServingError(
      'UNAVAILABLE',
      `model '${this.name}' version ${this.version} is unavailable: ${reason}`,
    )
  }
}
