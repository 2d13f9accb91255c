import { nowMs } from '../lifecycle/clock.js'
import type { Log } from '../lifecycle/log.js'
import type { StoreMetrics } from '../metrics/store-metrics.js'
import type { Rescue } from './store-messages.js'

const remindMs = 60_000

/** How the store is doing, for readiness and the page. */
export type StoreHealth = Readonly<{
  /** `degraded`: results are published without being stored. */
  state: 'starting' | 'up' | 'degraded' | 'stopped'
  reason: string
  bytes: number
}>

/** How the store is doing, and what log and metrics are told of it. */
export class StoreState {
  #state: StoreHealth['state'] = 'starting'
  #reason = 'not started'
  #bytes = 0
  #toldMs = Number.NEGATIVE_INFINITY

  constructor(
    readonly path: string,
    readonly metrics: StoreMetrics,
    readonly log: Log,
  ) {
    metrics.up.set(0)
  }

  get health(): StoreHealth {
    return { state: this.#state, reason: this.#reason, bytes: this.#bytes }
  }

  is(state: StoreHealth['state']): boolean {
    return this.#state === state
  }

  set bytes(bytes: number) {
    this.#bytes = bytes
    this.metrics.bytes.set(bytes)
  }

  up(): void {
    if (this.#state === 'degraded') this.log.info({ path: this.path }, 'records are stored again')
    this.#set('up', 'records are stored')
  }

  degraded(reason: string): void {
    this.#set('degraded', reason)
    const atMs = nowMs()
    if (atMs - this.#toldMs < remindMs) return
    this.#toldMs = atMs
    this.log.error(
      { path: this.path, reason },
      'records are published without being stored: they are lost with this process',
    )
  }

  stopped(): void {
    this.#set('stopped', 'stopped')
  }

  /** A damaged file was put out of the way. */
  rescued({ reason, report, aside }: Rescue): void {
    const { records = 0, lost = 0 } = report ?? {}
    this.metrics.records.inc({ result: 'lost' }, lost)
    const words =
      report === undefined ? 'an empty one takes its place' : 'what could be read of it is in a new one'
    this.log.error(
      { path: this.path, aside, salvaged: records, lost },
      `the store of records was damaged: ${reason}; it is now ${aside}, and ${words}`,
    )
  }

  #set(state: StoreHealth['state'], reason: string): void {
    this.#state = state
    this.#reason = reason
    this.metrics.up.set(state === 'up' ? 1 : 0)
  }
}
