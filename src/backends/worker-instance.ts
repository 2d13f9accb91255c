import { Instance } from '../runtime/instance.js'

/** How long a thread may take to end before it is left alone. */
const stopMs = 5_000

/** A worker thread of a backend instance. One run at a time. */
export class WorkerInstance<Load, Job, Result> {
  readonly #instance: Instance<Load, unknown, Job, Result>
  #closed: Promise<void> | undefined

  private constructor(name: string, entry: string, onBegan?: (thread: number) => void) {
    this.#instance = new Instance(name, entry, onBegan)
  }

  /** @param onBegan - called with the number of its thread. @throws what the worker throws when it loads. */
  static async start<Load, Job, Result>(
    name: string,
    entry: string,
    load: Load,
    onBegan?: (thread: number) => void,
  ): Promise<WorkerInstance<Load, Job, Result>> {
    const worker = new WorkerInstance<Load, Job, Result>(name, entry, onBegan)
    try {
      await worker.#instance.load(load)
      return worker
    } catch (error) {
      await worker.close()
      throw error
    }
  }

  /** Resolves with the cause when the thread ends unasked. */
  get exited(): Promise<Error> {
    return this.#instance.exited
  }

  get thread(): number | undefined {
    return this.#instance.thread
  }

  /**
   * @param transfer - buffers of the job that move to the worker.
   * @throws InferenceFailedError, WorkerExitedError
   */
  run(job: Job, transfer: readonly ArrayBuffer[]): Promise<Result> {
    return this.#instance.run(job, transfer)
  }

  /** Ends the thread where it is. Only for threads that run JavaScript alone. */
  terminate(): void {
    this.#instance.terminate()
  }

  /** Ends after the run in progress. Idempotent, never rejects. */
  close(): Promise<void> {
    this.#closed ??= this.#instance.stop(stopMs).then(() => undefined)
    return this.#closed
  }
}
