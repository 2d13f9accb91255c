import type { Execution } from './backend.js'
import type { InferRequest } from './infer.js'
import type { Tensor } from '../tensors/tensor.js'
import type { CheckedRequest } from './check-request.js'
import type { QueueEntry } from './policies/request-queue.js'

/** A request that is on its way through a scheduler. It settles once; settling it again does nothing. */
export class PendingRequest implements QueueEntry {
  /** When it left the queue. */
  startedMs = 0
  #onAbort: (() => void) | undefined
  #left = false

  constructor(
    readonly request: InferRequest,
    readonly checked: CheckedRequest,
    readonly enqueuedMs: number,
    readonly resolve: (outputs: readonly Tensor[]) => void,
    readonly reject: (error: unknown) => void,
  ) {}

  get batchSize(): number {
    return this.checked.batchSize
  }

  get shapeKey(): string {
    return this.checked.shapeKey
  }

  get priority(): number {
    return this.request.priority
  }

  get timeoutUs(): number {
    return this.request.timeoutUs
  }

  /** Calls back if the client goes while the request waits; not for one that has started already. */
  watch(onAbort: () => void): void {
    const { signal } = this.request
    if (signal === undefined || this.#left) return
    this.#onAbort = onAbort
    signal.addEventListener('abort', onAbort, { once: true })
  }

  /** It does not wait any more. */
  unwatch(): void {
    this.#left = true
    if (this.#onAbort !== undefined) this.request.signal?.removeEventListener('abort', this.#onAbort)
  }

  execution(): Execution {
    return {
      inputs: this.checked.inputs,
      outputs: this.checked.outputs,
      batchSize: this.checked.batchSize,
      sequence: this.request.sequence,
      signal: this.request.signal,
    }
  }
}
