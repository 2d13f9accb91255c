import type { BroadcastJob } from './broadcast-job.js'

/**
 * Serves one message after the other to chunks of clients, giving the event loop its turn in between: 5,000 clients at once
 * would hold it for 40 ms. Every client gets its messages in order, as a message begins only when the one before is through.
 */
export class Broadcaster<Client> {
  readonly #waiting: BroadcastJob[] = []
  /** Left out since the running message began; they come right after it. */
  #leftOut: BroadcastJob[] = []
  #running = false

  constructor(
    readonly limits: Readonly<{ chunkClients: number; maxBacklog: number }>,
    readonly handlers: Readonly<{
      /** Clients that were there when the message began. */
      clients: () => readonly Client[]
      serve: (job: BroadcastJob, clients: readonly Client[]) => void
      /** The message is through. */
      done: (job: BroadcastJob) => void
      /** The backlog is full, and this message, the oldest in it, is not sent. */
      leftOut: (job: BroadcastJob) => void
    }>,
  ) {}

  push(job: BroadcastJob): void {
    this.#waiting.push(job)
    if (!this.#running) {
      this.#runNext()
      return
    }
    if (this.#waiting.length <= this.limits.maxBacklog) return
    const oldest = this.#waiting.shift()
    if (oldest !== undefined) this.#leftOut.push({ ...oldest, picture: undefined })
  }

  clear(): void {
    this.#waiting.length = 0
    this.#leftOut = []
  }

  #runNext(): void {
    for (;;) {
      const leftOut = this.#leftOut
      this.#leftOut = []
      for (const job of leftOut) this.handlers.leftOut(job)
      const job = this.#waiting.shift()
      this.#running = job !== undefined
      if (job === undefined) return
      const clients = this.handlers.clients()
      if (clients.length > this.limits.chunkClients) {
        this.#runChunk(job, clients, 0)
        return
      }
      this.handlers.serve(job, clients)
      this.handlers.done(job)
    }
  }

  #runChunk(job: BroadcastJob, clients: readonly Client[], from: number): void {
    const to = from + this.limits.chunkClients
    this.handlers.serve(job, clients.slice(from, to))
    if (to < clients.length) {
      setImmediate(() => this.#runChunk(job, clients, to))
      return
    }
    this.handlers.done(job)
    setImmediate(() => this.#runNext())
  }
}
