import type { ModelConfig } from '../../repository/model-config.js'
import { atMost } from '../../lifecycle/delay.js'
import { nowMs } from '../../lifecycle/clock.js'
import type { InferRequest } from '../../runtime/infer.js'
import type { LoadedModel } from '../../runtime/loaded-model.js'
import { ServingError } from '../../tensors/serving-error.js'
import type { ModelStatistics } from '../../runtime/statistics.js'
import type { Tensor, TensorSpec } from '../../tensors/tensor.js'

/**
 * A loaded model that knows how many requests are in it: closing it lets them finish first, so that a model can be replaced
 * without losing one.
 */
export class ServedModel implements LoadedModel {
  readonly name: string
  readonly version: string
  readonly config: ModelConfig
  readonly platform: string
  readonly inputs: readonly TensorSpec[]
  readonly outputs: readonly TensorSpec[]
  #inside = 0
  #idle: (() => void) | undefined
  #closed: Promise<void> | undefined

  constructor(readonly inner: LoadedModel) {
    this.name = inner.name
    this.version = inner.version
    this.config = inner.config
    this.platform = inner.platform
    this.inputs = inner.inputs
    this.outputs = inner.outputs
  }

  get onGpu(): boolean {
    return this.inner.onGpu ?? false
  }

  get sizes(): LoadedModel['sizes'] {
    return this.inner.sizes
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
    if (this.#closed !== undefined)
      throw new ServingError(
        'UNAVAILABLE',
        `Request for unknown model: '${this.name}' version ${this.version} is not at ready state`,
      )
    this.#inside += 1
    try {
      return await this.inner.infer(request)
    } finally {
      this.#inside -= 1
      if (this.#inside === 0) this.#idle?.()
    }
  }

  stop(drainMs: number): Promise<void> {
    this.#closed ??= this.#close(drainMs)
    return this.#closed
  }

  async #close(drainMs: number): Promise<void> {
    const beganMs = nowMs()
    if (this.#inside > 0) await atMost(drainMs, new Promise<void>((resolve) => (this.#idle = resolve)))
    await this.inner.stop(Math.max(0, drainMs - (nowMs() - beganMs)))
  }
}
