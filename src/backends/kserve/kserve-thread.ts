import { Worker } from 'node:worker_threads'
import { WorkerExitedError } from '../../runtime/errors.js'
import { atMost } from '../../lifecycle/delay.js'
import { entryPath } from '../../lifecycle/entry.js'
import type { Log } from '../../lifecycle/log.js'
import { byTrueName } from '../../lifecycle/system-limit.js'
import { ServingError } from '../../tensors/serving-error.js'
import type {
  CallKind,
  Calls,
  FromKserveThread,
  KserveStart,
  RemoteAnswer,
  RemoteDescription,
  RemoteRequest,
  ToKserveThread,
} from './kserve-protocol.js'
import type { KserveSettings } from './kserve-settings.js'

/** For values of JavaScript; tensors and messages lie outside of it. */
const heapMb = 512
/** Longest that calls under way are waited for at the end. */
const closeMs = 5_000

type Pending = Readonly<{ resolve(result: unknown): void; reject(error: Error): void }>

export type KserveThreadOptions = Readonly<{
  settings: KserveSettings
  log: Log
  /** Path of the entry of the thread; tests have one of their own. */
  entry?: string | undefined
}>

/**
 * The thread that calls the server of a remote model, seen from the loop that serves requests. It runs any number of calls at once. Each
 * settles: with the answer, what is wrong with it, or `GANTRY_WORKER_EXITED` when the thread ends.
 */
export class KserveThread {
  /** Resolves with the cause when the thread ends unasked. */
  readonly exited: Promise<WorkerExitedError>
  /** Number of the thread, by `ownThread`; undefined until it has started. */
  thread: number | undefined
  readonly #worker: Worker
  readonly #pending = new Map<number, Pending>()
  readonly #ended: Promise<WorkerExitedError>
  readonly #started: Promise<void>
  #nextId = 1
  #end: WorkerExitedError | undefined
  #closing: Promise<void> | undefined

  private constructor({ settings, log, entry }: KserveThreadOptions) {
    const workerData: KserveStart = { settings }
    this.#worker = new Worker(entry ?? entryPath(import.meta.url, './kserve-worker.js'), {
      name: settings.name,
      stdin: false,
      workerData,
      resourceLimits: { maxOldGenerationSizeMb: heapMb },
    })
    let started: () => void
    this.#started = new Promise((resolve) => (started = resolve))
    this.#worker.on('message', (message: FromKserveThread) => {
      if (message.type === 'started') {
        this.thread = message.thread
        started()
      } else if (message.type === 'log') log[message.level](message.fields, message.text)
      else this.#settle(message)
    })
    let cause: unknown
    this.#worker.on('error', (error: Error) => (cause = error))
    this.#worker.on('messageerror', (error) => (cause = error))
    this.#ended = new Promise((resolve) => {
      this.#worker.once('exit', (code) => {
        const error = new WorkerExitedError(settings.name, code, cause)
        this.#end = error
        for (const { reject } of this.#pending.values()) reject(error)
        this.#pending.clear()
        resolve(error)
      })
    })
    this.exited = new Promise((resolve) => {
      void this.#ended.then((error) => {
        if (this.#closing === undefined) resolve(error)
      })
    })
  }

  /** @throws WorkerExitedError, SystemLimitError */
  static async start(options: KserveThreadOptions): Promise<KserveThread> {
    const thread = KserveThread.#made(options)
    const ended = await Promise.race([thread.#started, thread.#ended])
    if (ended !== undefined) throw ended
    return thread
  }

  static #made(options: KserveThreadOptions): KserveThread {
    try {
      return new KserveThread(options)
    } catch (error) {
      throw byTrueName(`cannot call the server of model "${options.settings.name}"`, error)
    }
  }

  /** What the server says of the model. @throws ServingError, WorkerExitedError */
  describe(): Promise<RemoteDescription> {
    return this.#call('describe', undefined, [], undefined)
  }

  /**
   * @param transfer - buffers of the request that move to the thread.
   * @throws ServingError, WorkerExitedError
   */
  infer(
    request: RemoteRequest,
    transfer: readonly ArrayBuffer[],
    signal: AbortSignal | undefined,
  ): Promise<RemoteAnswer> {
    return this.#call('infer', request, transfer, signal)
  }

  /** Calls under way may end, for a while. Idempotent, never rejects. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#say({ type: 'close' })
    if ((await atMost(closeMs, this.#ended)) === undefined) await this.#worker.terminate()
  }

  async #call<Kind extends CallKind>(
    kind: Kind,
    given: Calls[Kind][0],
    transfer: readonly ArrayBuffer[],
    signal: AbortSignal | undefined,
  ): Promise<Calls[Kind][1]> {
    if (this.#end !== undefined) throw this.#end
    const id = this.#nextId++
    const cancel = () => this.#say({ type: 'cancel', id })
    try {
      return await new Promise<Calls[Kind][1]>((resolve, reject) => {
        this.#pending.set(id, { resolve: resolve, reject })
        this.#say({ type: 'call', id, kind, given } as ToKserveThread, transfer)
        signal?.addEventListener('abort', cancel, { once: true })
        if (signal?.aborted === true) cancel()
      })
    } finally {
      this.#pending.delete(id)
      signal?.removeEventListener('abort', cancel)
    }
  }

  #settle(message: Extract<FromKserveThread, { type: 'answered' | 'refused' }>): void {
    const pending = this.#pending.get(message.id)
    if (message.type === 'answered') pending?.resolve(message.result)
    else {
      const { status, message: problem, reason } = message.refusal
      pending?.reject(new ServingError(status, problem, reason))
    }
  }

  #say(message: ToKserveThread, transfer: readonly ArrayBuffer[] = []): void {
    this.#worker.postMessage(message, transfer)
  }
}
