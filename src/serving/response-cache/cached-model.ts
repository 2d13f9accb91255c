import { nowMs } from '../../lifecycle/clock.js'
import type { InferRequest } from '../../runtime/infer.js'
import type { LoadedModel } from '../../runtime/loaded-model.js'
import type { StatisticsRecorder } from '../../runtime/statistics-recorder.js'
import type { ModelStatistics } from '../../runtime/statistics.js'
import type { Tensor } from '../../tensors/tensor.js'
import { requestKey } from './request-key.js'
import type { ResponseCache } from './response-cache.js'

/** A model whose answers are recorded where its own are. */
export type RecordedModel = LoadedModel & Readonly<{ recorder: StatisticsRecorder }>

/**
 * A model with a response cache in front of it. Of requests that are the same and come at the same time one runs; the others wait
 * for its answer, and count as hits.
 */
export class CachedModel implements LoadedModel {
  readonly #running = new Map<string, Promise<readonly Tensor[]>>()

  constructor(
    readonly inner: RecordedModel,
    readonly cache: ResponseCache,
  ) {}

  get name(): string {
    return this.inner.name
  }

  get version(): string {
    return this.inner.version
  }

  get config(): LoadedModel['config'] {
    return this.inner.config
  }

  get platform(): string {
    return this.inner.platform
  }

  get onGpu(): boolean {
    return this.inner.onGpu ?? false
  }

  get sizes(): LoadedModel['sizes'] {
    return this.inner.sizes
  }

  get inputs(): LoadedModel['inputs'] {
    return this.inner.inputs
  }

  get outputs(): LoadedModel['outputs'] {
    return this.inner.outputs
  }

  get rowsPerBox(): readonly string[] {
    return this.inner.rowsPerBox ?? []
  }

  labels(output: string): readonly string[] {
    return this.inner.labels(output)
  }

  get broken(): LoadedModel['broken'] {
    return this.inner.broken
  }

  statistics(): ModelStatistics {
    return this.inner.statistics()
  }

  generation(): Promise<string> {
    return this.inner.generation()
  }

  async infer(request: InferRequest): Promise<readonly Tensor[]> {
    if (request.sequence !== undefined) return this.inner.infer(request)
    const beganMs = nowMs()
    const generation = await this.#generationNow()
    if (generation === undefined) return this.inner.infer(request)
    const key = await requestKey(this.name, this.version, generation, request)
    const running = this.#running.get(key)
    if (running !== undefined) return this.#ofOther(running, request, beganMs)
    const answer = this.#answer(key, generation, request, beganMs)
    this.#running.set(key, answer)
    try {
      return await answer
    } finally {
      this.#running.delete(key)
    }
  }

  stop(drainMs: number): Promise<void> {
    return this.inner.stop(drainMs)
  }

  /** `undefined` while it is not known: a step of an ensemble may be away. */
  #generationNow(): Promise<string | undefined> {
    return this.generation().catch(() => undefined)
  }

  /** The answer of the same request that came before. Its failure is its own: then this one runs by itself. */
  async #ofOther(
    running: Promise<readonly Tensor[]>,
    request: InferRequest,
    beganMs: number,
  ): Promise<readonly Tensor[]> {
    try {
      const outputs = await running
      this.inner.recorder.recordCacheHit((nowMs() - beganMs) * 1e6)
      return outputs
    } catch {
      return this.inner.infer(request)
    }
  }

  async #answer(
    key: string,
    generation: string,
    request: InferRequest,
    beganMs: number,
  ): Promise<readonly Tensor[]> {
    const known = await this.cache.get(key)
    const lookupMs = nowMs() - beganMs
    if (known !== undefined) {
      this.inner.recorder.recordCacheHit(lookupMs * 1e6)
      return known
    }
    const outputs = kept(await this.inner.infer(request))
    const insertBeganMs = nowMs()
    // A step of an ensemble may have been replaced meanwhile: then nobody knows whose answer this is.
    if (generation === (await this.#generationNow())) await this.cache.put(key, outputs)
    this.inner.recorder.recordCacheMiss((lookupMs + nowMs() - insertBeganMs) * 1e6)
    return outputs
  }
}

/** Several take them now: no one may move the buffers. */
function kept(outputs: readonly Tensor[]): readonly Tensor[] {
  return outputs.map(({ movable: _, ...tensor }) => tensor)
}
