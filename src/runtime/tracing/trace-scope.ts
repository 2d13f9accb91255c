import { isTracing, numberOf, type TraceSettings } from './trace-settings.js'
import type { RequestTrace } from './request-trace.js'

/** Traces that wait for a file are written when they have so many bytes, whatever the settings say. */
const maxHeldBytes = 1024 ** 2

/** Sampling under settings that do not change: those of the server, or of one model. Counts begin with it. */
export class TraceScope {
  #seen = 0
  #left: number
  #underWay = 0
  #held: string[] = []
  #heldBytes = 0
  #closed = false

  constructor(
    readonly settings: TraceSettings,
    readonly save: (entries: string) => void,
  ) {
    this.#left = numberOf(settings, 'trace_count')
  }

  /** Traces that are still to be taken; -1 is no limit. */
  get left(): number {
    return this.#left
  }

  /** Whether the request that came now is traced: every `trace_rate`-th is. One that is must come back to {@link add}. */
  sample(): boolean {
    if (this.#left === 0 || !isTracing(this.settings)) return false
    if (++this.#seen % numberOf(this.settings, 'trace_rate') !== 0) return false
    if (this.#left > 0) this.#left -= 1
    this.#underWay += 1
    return true
  }

  /** A trace is complete. */
  add(trace: RequestTrace): void {
    const entries = trace.toJson()
    this.#underWay -= 1
    this.#held.push(entries)
    this.#heldBytes += entries.length
    const every = numberOf(this.settings, 'log_frequency')
    const isLast = this.#underWay === 0 && (this.#closed || this.#left === 0)
    if (isLast || this.#heldBytes > maxHeldBytes || (every > 0 && this.#held.length >= every)) this.#write()
  }

  /** Writes what it has. Traces that are under way are written when they are complete. */
  close(): void {
    this.#closed = true
    this.#write()
  }

  #write(): void {
    if (this.#held.length === 0) return
    this.save(this.#held.join(','))
    this.#held = []
    this.#heldBytes = 0
  }
}
