import { nowMs } from '../../lifecycle/clock.js'
import { mostWaitMs, type GatherLimits } from './gather-policy.js'
import type { BroadcastJob } from './rendering.js'

/**
 * Serves messages to chunks of clients, giving the event loop its turn in between: 5,000 clients at once would hold it for 40 ms. Every
 * client gets its messages in order: those that wait go out together, once those before are through.
 *
 * What a message costs is mostly its write to each connection. When that keeps the loop busy, messages are gathered for a moment, so that
 * each client gets all of them in one write, however many cameras there are.
 */
export class Broadcaster<Client> {
  #waiting: BroadcastJob[] = []
  /** Left out since the running messages began; they come right after them. */
  #leftOut: BroadcastJob[] = []
  #running = false
  #gathering: NodeJS.Timeout | undefined
  #idle: (() => void) | undefined

  constructor(
    readonly limits: GatherLimits & Readonly<{ chunkClients: number; maxBacklog: number }>,
    readonly handlers: Readonly<{
      /** Clients that were there when the messages began. */
      clients: () => readonly Client[]
      /** Share of its time that the loop is busy, 0..1. */
      load: () => number
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

  /** Begins with what waits, once the oldest of it has waited as long as the loop is busy enough for. */
  #gather(): void {
    const [oldest] = this.#waiting
    if (oldest === undefined) return
    const waitMs = mostWaitMs(this.handlers.load(), this.limits) - (nowMs() - oldest.atMs)
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
