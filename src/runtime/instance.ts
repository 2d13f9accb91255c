import '../lifecycle/no-telemetry.js'
import { Worker } from 'node:worker_threads'
import { RemoteError, InternalError } from '../errors.js'
import { atMost } from '../lifecycle/delay.js'
import { InferenceFailedError, WorkerExitedError } from './errors.js'
import type { FromWorker, ToWorker, WorkerBegan } from './worker-runtime.js'

type Pending<Ready, Result> = {
  resolve: (message: FromWorker<Ready, Result>) => void
  reject: (error: Error) => void
}

/**
 * One worker thread with one session, seen from the loop that gives it work.
 *
 * Every request settles: with the worker's answer, or with `GANTRY_WORKER_EXITED` when the thread ends.
 */
export class Instance<Load, Ready, Job, Result> {
  readonly #worker: Worker
  readonly #pending = new Map<number, Pending<Ready, Result>>()
  /** Resolves with the cause if the thread ends without having been asked to, after its requests have settled. */
  readonly exited: Promise<Error>
  readonly #ending: Promise<WorkerExitedError>
  #nextRequestId = 1
  #stopping = false
  #ended = false
  #lastError: unknown
  #thread: number | undefined

  /**
   * @param entry - path of the compiled worker.
   * @param onBegan - called with the number of the thread, by `ownThread`, before it loads anything.
   */
  constructor(
    readonly name: string,
    entry: string,
    onBegan?: (thread: number) => void,
  ) {
    this.#worker = new Worker(entry, { name, stdin: false })
    this.#worker.on('message', (message: FromWorker<Ready, Result> | WorkerBegan) => {
      if (message.type === 'began') {
        this.#thread = message.thread
        onBegan?.(message.thread)
        return
      }
      this.#pending.get(message.requestId)?.resolve(message)
      this.#pending.delete(message.requestId)
    })
    this.#worker.on('error', (error: Error) => (this.#lastError = error))
    this.#worker.on('messageerror', (error) => (this.#lastError = error))
    let exitedUnasked: (error: Error) => void
    this.exited = new Promise((resolve) => (exitedUnasked = resolve))
    this.#ending = new Promise((resolve) => {
      this.#worker.once('exit', (code) => {
        this.#ended = true
        const error = new WorkerExitedError(name, code, this.#lastError)
        this.#giveUp(error)
        resolve(error)
        if (!this.#stopping) exitedUnasked(error)
      })
    })
  }

  get ended(): boolean {
    return this.#ended
  }

  /** Number of the thread, by `ownThread`; undefined until it has begun. */
  get thread(): number | undefined {
    return this.#thread
  }

  /** @throws what the backend threw, as `RemoteError`; `WorkerExitedError`. */
  async load(options: Load): Promise<Ready> {
    const answer = await this.#ask({ type: 'load', requestId: this.#nextRequestId++, options }, [])
    if (answer.type === 'ready') return answer.info
    if (answer.type === 'failed') throw new RemoteError(answer.error)
    throw new InternalError(`instance ${this.name} answered "${answer.type}" to "load"`)
  }

  /**
   * @param transfer - buffers of the job that move to the worker.
   * @throws InferenceFailedError, WorkerExitedError
   */
  async run(job: Job, transfer: readonly ArrayBuffer[]): Promise<Result> {
    const answer = await this.#ask({ type: 'run', requestId: this.#nextRequestId++, job }, transfer)
    if (answer.type === 'done') return answer.result
    if (answer.type === 'failed') throw new InferenceFailedError(answer.error)
    throw new InternalError(`instance ${this.name} answered "${answer.type}" to "run"`)
  }

  /**
   * Asks the thread to finish its run, release the session and end. Idempotent, never rejects.
   *
   * A thread that does not end in time is left alone, since terminating it inside a run would abort the process, and no
   * longer keeps the process alive; its requests are rejected.
   *
   * @returns whether it ended within `drainMs`.
   */
  async stop(drainMs: number): Promise<boolean> {
    if (!this.#stopping && !this.#ended) {
      this.#stopping = true
      this.#ask({ type: 'stop', requestId: this.#nextRequestId++ }, []).catch(() => undefined)
    }
    const ended = (await atMost(drainMs, this.#ending)) !== undefined
    if (!ended) {
      this.#worker.unref()
      this.#giveUp(
        new WorkerExitedError(this.name, undefined, new Error(`it did not end within ${drainMs} ms`)),
      )
    }
    return ended
  }

  /**
   * Ends the thread where it is, an endless loop included; its requests are rejected. Only for threads that run JavaScript alone:
   * ending one inside a native call can abort the process.
   */
  terminate(): void {
    void this.#worker.terminate()
  }

  #giveUp(error: WorkerExitedError): void {
    for (const { reject } of this.#pending.values()) reject(error)
    this.#pending.clear()
  }

  #ask(message: ToWorker<Load, Job>, transfer: readonly ArrayBuffer[]): Promise<FromWorker<Ready, Result>> {
    return new Promise((resolve, reject) => {
      if (this.#ended) {
        reject(new WorkerExitedError(this.name, undefined, this.#lastError))
        return
      }
      this.#pending.set(message.requestId, { resolve, reject })
      this.#worker.postMessage(message, transfer)
    })
  }
}
