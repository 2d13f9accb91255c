import { ServingError } from '../tensors/serving-error.js'

/** Lets at most `limit` requests through at once; others wait in order. 0 is no limit. */
export class StepGate {
  #inside = 0
  readonly #waiting: (() => void)[] = []

  constructor(readonly limit: number) {}

  get waiting(): number {
    return this.#waiting.length
  }

  /** Runs once there is room. @throws ServingError `CANCELLED` when the signal aborts before; what `run` throws. */
  async through<T>(signal: AbortSignal | undefined, run: () => Promise<T>): Promise<T> {
    if (this.limit > 0 && this.#inside >= this.limit) await this.#turn(signal)
    else this.#inside += 1
    try {
      return await run()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#inside -= 1
      else next()
    }
  }

  /** The place of whoever leaves goes to whoever waits longest. */
  #turn(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const cancelled = () => {
        this.#waiting.splice(this.#waiting.indexOf(entry), 1)
        reject(new ServingError('CANCELLED', 'request was cancelled', 'CANCELED'))
      }
      const entry = () => {
        signal?.removeEventListener('abort', cancelled)
        resolve()
      }
      if (signal?.aborted === true) {
        reject(new ServingError('CANCELLED', 'request was cancelled', 'CANCELED'))
        return
      }
      signal?.addEventListener('abort', cancelled, { once: true })
      this.#waiting.push(entry)
    })
  }
}
