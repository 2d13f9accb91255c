import { nowMs } from '../../lifecycle/clock.js'

type TraceHead = Readonly<{
  id: number
  model: string
  version: string
  requestId: string
  /** Of the ensemble whose step this is; 0 for a request of a client. */
  parentId: number
}>

/** What happened to a request when, and to those that ensembles made of it. Times are of the monotonic clock. */
export class RequestTrace {
  readonly #timestamps: Readonly<{ name: string; ns: number }>[] = []
  readonly #steps: RequestTrace[] = []
  #error: string | undefined

  /** @param nextId - never gives the same number twice. */
  constructor(
    readonly head: TraceHead,
    readonly nextId: () => number,
  ) {}

  at(name: string, atMs = nowMs()): void {
    this.#timestamps.push({ name, ns: Math.round(atMs * 1e6) })
  }

  /** Those that ensembles made of it, in their order. */
  get steps(): readonly RequestTrace[] {
    return this.#steps
  }

  /** Why it failed; undefined where it did not. */
  get error(): string | undefined {
    return this.#error
  }

  /** When it happened first, in milliseconds; undefined: it did not. */
  timeOf(name: string): number | undefined {
    const ns = this.#timestamps.find((timestamp) => timestamp.name === name)?.ns
    return ns === undefined ? undefined : ns / 1e6
  }

  failed(error: unknown): void {
    this.#error ??= error instanceof Error ? error.message : String(error)
  }

  /** Of a request that a step makes of this one. */
  step(model: string, version: string): RequestTrace {
    const { id: parentId, requestId } = this.head
    const step = new RequestTrace({ id: this.nextId(), model, version, requestId, parentId }, this.nextId)
    this.#steps.push(step)
    return step
  }

  /** Entries of a trace file, with commas between them: the model, then one for each time; those of steps follow. */
  toJson(): string {
    const { id, model, version, requestId, parentId } = this.head
    const head = {
      id,
      model_name: model,
      model_version: Number(version),
      ...(requestId === '' ? {} : { request_id: requestId }),
      ...(parentId === 0 ? {} : { parent_id: parentId }),
    }
    const entries = [head, ...this.#timestamps.map((timestamp) => ({ id, timestamps: [timestamp] }))]
    const own = entries.map((entry) => JSON.stringify(entry))
    return [...own, ...this.#steps.map((step) => step.toJson())].join(',')
  }
}

/** Runs a request; its trace, if it has one, is told when it began and ended. */
export async function traced<T>(trace: RequestTrace | undefined, run: () => Promise<T>): Promise<T> {
  if (trace === undefined) return run()
  trace.at('REQUEST_START')
  try {
    return await run()
  } catch (error) {
    trace.failed(error)
    throw error
  } finally {
    trace.at('REQUEST_END')
  }
}
