import { isMarkedAsUntransferable, Worker } from 'node:worker_threads'
import { entryPath } from '../../lifecycle/entry.js'
import { byTrueName } from '../../lifecycle/system-limit.js'
import { ServingError } from '../../tensors/serving-error.js'
import {
  errorOf,
  type CodecStarted,
  type CodecJob,
  type JobAnswer,
  type JobKind,
  type Jobs,
} from './codec-jobs.js'

export type CodecPoolOptions = Readonly<{
  /** Bytes of all jobs under way and waiting together; one alone may have more. */
  maxBytes: number
  threads?: number
  /** Longest a job may take in its thread. */
  jobAtMostMs?: number
  /** A thread with nothing to do ends after so long, and gives back its memory. */
  idleMs?: number
  entry?: string
}>

/** Bytes that requests may have in a pool, where one has `maxRequestBytes` at most. */
export function bytesUnderWay(maxRequestBytes: number): number {
  return 8 * maxRequestBytes
}

const defaults = { threads: 2, jobAtMostMs: 60_000, idleMs: 10_000 }

/** For values of JavaScript; tensors and bodies lie outside of it. */
const heapMb = 512

type Waiting = Readonly<{
  job: CodecJob
  transfer: readonly ArrayBuffer[]
  bytes: number
  resolve(result: unknown): void
  reject(error: unknown): void
}>

/**
 * Threads that read large requests and write large answers, so that the loop that serves all clients never waits for one of them, nor for
 * the garbage it leaves. They are started when they are needed.
 */
export class CodecPool {
  readonly #options: Required<CodecPoolOptions>
  readonly #waiting: Waiting[] = []
  readonly #threads = new Set<CodecThread>()
  #bytes = 0
  #closed = false

  constructor(options: CodecPoolOptions) {
    this.#options = { ...defaults, entry: entryPath(import.meta.url, './codec-worker.js'), ...options }
  }

  /** Numbers of the threads that there are, by `ownThread`. */
  get threads(): readonly number[] {
    return [...this.#threads].flatMap(({ thread }) => thread ?? [])
  }

  /**
   * @param bytes - whose buffer moves to the thread, or is copied where something else is in it. Nobody may read them after this.
   * @param given - the rest of the job, with the moved bytes.
   * @param signal - ends it, also while it is read.
   * @throws what the job throws; ServingError `UNAVAILABLE` for too many at once, `CANCELLED`; SystemLimitError
   */
  async run<Kind extends JobKind>(
    kind: Kind,
    bytes: Uint8Array,
    given: (bytes: Buffer) => Jobs[Kind][0],
    signal: AbortSignal,
  ): Promise<Jobs[Kind][1]> {
    if (this.#closed) throw new ServingError('UNAVAILABLE', 'Server is stopping')
    if (signal.aborted) throw cancelled()
    if (this.#bytes > 0 && this.#bytes + bytes.byteLength > this.#options.maxBytes)
      throw new ServingError('UNAVAILABLE', 'too many large requests at once, try again', 'REJECTED')
    const own = ownBytes(bytes)
    const { byteLength } = own
    this.#bytes += byteLength
    try {
      return (await this.#result({ kind, given: given(own) } as CodecJob, own, signal)) as Jobs[Kind][1]
    } finally {
      this.#bytes -= byteLength
    }
  }

  /** Jobs under way are refused. Idempotent. */
  close(): void {
    this.#closed = true
    for (const { reject } of this.#waiting.splice(0))
      reject(new ServingError('UNAVAILABLE', 'Server is stopping'))
    for (const thread of this.#threads) thread.end(new ServingError('UNAVAILABLE', 'Server is stopping'))
  }

  async #result(job: CodecJob, bytes: Buffer, signal: AbortSignal): Promise<unknown> {
    let onAbort = (): void => undefined
    try {
      return await new Promise((resolve, reject) => {
        const transfer = [bytes.buffer as ArrayBuffer]
        const waiting: Waiting = { job, transfer, bytes: bytes.byteLength, resolve, reject }
        onAbort = () => this.#cancel(waiting)
        signal.addEventListener('abort', onAbort, { once: true })
        this.#waiting.push(waiting)
        this.#pump()
      })
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  #cancel(waiting: Waiting): void {
    const place = this.#waiting.indexOf(waiting)
    if (place >= 0) {
      this.#waiting.splice(place, 1)
      waiting.reject(cancelled())
      return
    }
    for (const thread of this.#threads) if (thread.current === waiting) thread.end(cancelled())
  }

  #pump(): void {
    for (let thread = this.#free(); thread !== undefined; thread = this.#free()) {
      const next = this.#waiting.shift()
      if (next === undefined) return
      thread.take(next)
    }
  }

  /** A thread for the next job; undefined where there is none, or no thread for it. */
  #free(): CodecThread | undefined {
    if (this.#waiting.length === 0) return undefined
    const free = [...this.#threads].find(({ current }) => current === undefined)
    if (free !== undefined || this.#threads.size >= this.#options.threads) return free
    try {
      return this.#started()
    } catch (error) {
      // A thread that is there will do it.
      if (this.#threads.size === 0) for (const { reject } of this.#waiting.splice(0)) reject(failure(error))
      return undefined
    }
  }

  #started(): CodecThread {
    const thread = new CodecThread(
      this.#options,
      () => this.#pump(),
      () => {
        this.#threads.delete(thread)
        this.#pump()
      },
    )
    this.#threads.add(thread)
    return thread
  }
}

class CodecThread {
  current: Waiting | undefined
  /** Known once it runs. */
  thread: number | undefined
  readonly #worker: Worker
  #timer: NodeJS.Timeout | undefined
  #ended = false

  constructor(
    readonly options: Required<CodecPoolOptions>,
    readonly onFree: () => void,
    readonly onEnd: () => void,
  ) {
    const resourceLimits = { maxOldGenerationSizeMb: heapMb }
    this.#worker = new Worker(options.entry, { name: 'codec', stdin: false, resourceLimits })
    // Whoever waits for a job has a connection that keeps the process.
    this.#worker.unref()
    this.#worker.on('message', (said: JobAnswer | CodecStarted) => {
      if ('thread' in said) this.thread = said.thread
      else this.#answered(said)
    })
    this.#worker.on('messageerror', (error) => this.end(error))
    this.#worker.on('error', (error) => this.end(failure(error)))
    this.#worker.on('exit', () => this.end(new Error('the thread that reads requests ended')))
  }

  take(waiting: Waiting): void {
    this.current = waiting
    this.#within(this.options.jobAtMostMs, () =>
      this.end(new ServingError('INTERNAL', 'the request takes too long to read')),
    )
    this.#worker.postMessage(waiting.job, waiting.transfer)
  }

  /** Ends the thread where it is; what it does is refused with the error. Idempotent. */
  end(error: unknown): void {
    if (this.#ended) return
    this.#ended = true
    clearTimeout(this.#timer)
    void this.#worker.terminate()
    this.current?.reject(error)
    this.onEnd()
  }

  #answered(answer: JobAnswer): void {
    const done = this.current
    this.current = undefined
    this.#within(this.options.idleMs, () => this.end(undefined))
    if ('refusal' in answer) done?.reject(errorOf(answer.refusal))
    else done?.resolve(answer.result)
    this.onFree()
  }

  #within(ms: number, otherwise: () => void): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(otherwise, ms).unref()
  }
}

function failure(error: unknown): unknown {
  if (error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY')
    return new ServingError('INVALID_ARG', 'the request takes too much memory to read')
  return byTrueName('a large request cannot be read', error)
}

function cancelled(): ServingError {
  return new ServingError('CANCELLED', 'the client closed the connection', 'CANCELED')
}

/** Most bytes of a frame that a transport leaves before a body in its buffer. */
const mostBytesBefore = 8

/** Bytes in a buffer that may move: their own where nothing else is in it. */
function ownBytes(bytes: Uint8Array): Buffer {
  const { buffer, byteOffset, byteLength } = bytes
  const own =
    byteOffset <= mostBytesBefore &&
    2 * byteLength >= buffer.byteLength &&
    buffer instanceof ArrayBuffer &&
    !isMarkedAsUntransferable(buffer)
  if (own) return Buffer.from(buffer, byteOffset, byteLength)
  const copy = new Uint8Array(bytes)
  return Buffer.from(copy.buffer)
}
