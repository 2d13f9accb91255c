import { Worker } from 'node:worker_threads'
import { entryPath } from '../lifecycle/entry.js'
import { GantryError } from '../errors.js'
import type { ReaderAnswer, ReaderAnswers, ReaderQuestion } from './store-messages.js'

/** Records cannot be read right now. */
export class StoreReadError extends GantryError {
  readonly code = 'GANTRY_STORE_UNAVAILABLE'
  readonly hint =
    'Look at the log for what is wrong with store.path; results stay live on the stream meanwhile.'
  override readonly retryable = true
  constructor(reason: string) {
    super(`stored results cannot be read: ${reason}`)
    this.name = 'StoreReadError'
  }
}

type Question = Readonly<{
  /** Number of the file that it is about. */
  file: number
  resolve(value: ReaderAnswers[keyof ReaderAnswers]): void
  reject(error: Error): void
}>

/** The thread that reads records, started by the first question. One that ends is started again by the next. */
export class StoreReader {
  #worker: Worker | undefined
  readonly #open = new Map<number, Question>()
  #lastId = 0
  #file = 0
  #isStopped = false

  /** @param damaged - told what is wrong with the file that is there now */
  constructor(
    readonly path: string,
    readonly damaged: (reason: string) => void,
  ) {}

  /** Starts it, to move what is written from the log into the file. */
  start(): void {
    if (!this.#isStopped) this.#thread()
  }

  /** @throws StoreReadError */
  async ask<Type extends ReaderQuestion['type']>(
    question: ReaderQuestion & { type: Type },
  ): Promise<ReaderAnswers[Type]> {
    const answer = await new Promise<ReaderAnswers[keyof ReaderAnswers]>((resolve, reject) => {
      if (this.#isStopped) return reject(new StoreReadError('the service is stopping'))
      const id = ++this.#lastId
      this.#open.set(id, { file: this.#file, resolve, reject })
      this.#thread().postMessage({ id, question })
    })
    // The thread answers each question in its own form.
    return answer as ReaderAnswers[Type]
  }

  /** The file may be another one. */
  reopen(): void {
    this.#file += 1
    this.#worker?.postMessage('reopen')
  }

  /** Idempotent, never rejects. */
  async stop(): Promise<void> {
    this.#isStopped = true
    const worker = this.#worker
    if (worker === undefined) return
    const gone = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
    worker.postMessage('close')
    await gone
  }

  #thread(): Worker {
    if (this.#worker !== undefined) return this.#worker
    const worker = new Worker(entryPath(import.meta.url, './reader-thread.js'), {
      name: 'store-reader',
      workerData: { path: this.path },
    })
    worker.on('message', (answer: ReaderAnswer) => this.#answered(answer))
    // `exit` follows, and tells all who wait.
    worker.on('error', () => undefined)
    worker.on('exit', () => {
      if (this.#worker === worker) this.#worker = undefined
      for (const { reject } of this.#open.values()) reject(new StoreReadError('its reader ended'))
      this.#open.clear()
    })
    this.#worker = worker
    return worker
  }

  #answered(answer: ReaderAnswer): void {
    const question = this.#open.get(answer.id)
    this.#open.delete(answer.id)
    if ('value' in answer) return question?.resolve(answer.value)
    question?.reject(new StoreReadError(answer.failed))
    if (answer.isDamaged && question?.file === this.#file) this.damaged(answer.failed)
  }
}
