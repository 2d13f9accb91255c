import { nowMs } from '../../lifecycle/clock.js'
import type { BroadcastJob } from './rendering.js'

/**
 * Serves messages to chunks of clients, giving the event loop its turn in between: 5,000 clients at once would hold it for 40 ms. Every
 * client gets its messages in order: those that wait go out together, once those before are through.
 *
 * What a message costs is mostly its write to each connection. To a crowd of clients messages are therefore gathered for a moment, so that
 * each gets all of them in one write, however many cameras there are.
 */
export class Broadcaster<Client> {
  #waiting: BroadcastJob[] = []
  /** Left out since the running messages began; they come right after them. */
  #leftOut: BroadcastJob[] = []
  #running = false
  #gathering: NodeJS.Timeout | undefined
  #idle: (() => void) | undefined

  constructor(
    readonly limits: Readonly<{
      chunkClients: number
      maxBacklog: number
      crowdClients: number
      gatherMs: number
    }>,
    readonly handlers: Readonly<{
      /** Clients that were there when the messages began. */
      clients: () => readonly Client[]
      serve: (jobs: readonly BroadcastJob[], clients: readonly Client[]) => void
      /** The message is through. */
      done: (job: BroadcastJob) => void
      /** The backlog is full, and this message, the oldest in it, is not sent. */
      leftOut: (job: BroadcastJob) => void
    }>,
  ) {}

  push(job: BroadcastJob): void {
    this.#waiting.push(job)
    if (!this.#running && this.#gathering === undefined) this.#gather()
    if (this.#waiting.length <= this.limits.maxBacklog) return
    if (!this.#running) {
      this.#run()
      return
    }
    const oldest = this.#waiting.shift()
    if (oldest !== undefined) this.#leftOut.push({ ...oldest, picture: undefined })
  }

  /** Sends what waits, without gathering more. Resolves when all is through. */
  async flush(): Promise<void> {
    if (this.#gathering !== undefined) this.#run()
    if (this.#running) await new Promise<void>((resolve) => (this.#idle = resolve))
  }

  clear(): void {
    clearTimeout(this.#gathering)
    this.#gathering = undefined
    this.#waiting = []
    this.#leftOut = []
  }

  /** Begins with what waits, for a crowd once the oldest of it has waited long enough. */
  #gather(): void {
    const [oldest] = this.#waiting
    if (oldest === undefined) return
    const crowd = this.handlers.clients().length >= this.limits.crowdClients
    const waitMs = crowd ? this.limits.gatherMs - (nowMs() - oldest.atMs) : 0
    if (waitMs > 0) this.#gathering = setTimeout(() => this.#run(), waitMs)
    else this.#run()
  }

  #run(): void {
    clearTimeout(this.#gathering)
    this.#gathering = undefined
    const leftOut = this.#leftOut
    this.#leftOut = []
    for (const job of leftOut) this.handlers.leftOut(job)
    const jobs = this.#waiting
    this.#waiting = []
    this.#running = true
    this.#runChunk(jobs, this.handlers.clients(), 0)
  }

  #runChunk(jobs: readonly BroadcastJob[], clients: readonly Client[], from: number): void {
    const to = from + this.limits.chunkClients
    this.handlers.serve(jobs, from === 0 && to >= clients.length ? clients : clients.slice(from, to))
    if (to < clients.length) {
      setImmediate(() => this.#runChunk(jobs, clients, to))
      return
    }
    for (const job of jobs) this.handlers.done(job)
    this.#running = false
    if (this.#waiting.length > 0) setImmediate(() => this.#goOn())
    else this.#idle?.()
  }

  #goOn(): void {
    if (!this.#running && this.#gathering === undefined) this.#gather()
  }
}
