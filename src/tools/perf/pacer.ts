import { Worker } from 'node:worker_threads'
import { entryPath } from '../../lifecycle/entry.js'
import type { Arrivals } from './arrivals.js'

/** What the thread begins with. */
export type PacerStart = Readonly<{
  arrivals: Arrivals
  /** An int32 that is not 0 once the thread shall end. */
  stop: SharedArrayBuffer
}>

/** Calls when requests are due, with the monotonic times at which they are: several when it is late. */
export class Pacer {
  readonly #stop = new SharedArrayBuffer(4)
  readonly #worker: Worker
  /** Resolves when it has begun; never where it is stopped before. */
  readonly started: Promise<void>

  constructor(arrivals: Arrivals, due: (timesMs: readonly number[]) => void) {
    const workerData: PacerStart = { arrivals, stop: this.#stop }
    this.#worker = new Worker(entryPath(import.meta.url, './pacer-worker.js'), { name: 'pacer', workerData })
    this.started = new Promise((resolve) => this.#worker.once('message', () => resolve()))
    this.#worker.on('message', due)
  }

  /** Calls no more after it. Idempotent, never rejects. */
  async stop(): Promise<void> {
    this.#worker.removeAllListeners('message')
    const flag = new Int32Array(this.#stop)
    Atomics.store(flag, 0, 1)
    Atomics.notify(flag, 0)
    await this.#worker.terminate()
  }
}
