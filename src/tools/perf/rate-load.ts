import type { InferLane, PreparedRequest } from '../client/infer-lane.js'
import type { Arrivals } from './arrivals.js'
import type { Load, RequestEnded, RequestRing } from './load.js'
import { Pacer } from './pacer.js'

export type RateSettings = Readonly<{
  arrivals: Arrivals
  /** Most requests under way; those that are due beyond it wait, and their time counts. */
  mostUnderWay: number
}>

/**
 * Requests at their times, whether the server keeps up or not. Latency counts from the time at which a request was due, not from when it
 * could be sent: a server that stands still is charged for every request that would have come meanwhile (coordinated omission).
 */
export class RateLoad<Request = PreparedRequest> implements Load {
  readonly #idle: InferLane<Request>[] = []
  readonly #lanes: InferLane<Request>[] = []
  /** Due times of requests for which there is no lane, from the index of the next one on. */
  #waiting: number[] = []
  #firstWaiting = 0
  #pacer: Pacer | undefined
  #stopped = false

  constructor(
    readonly settings: RateSettings,
    readonly lane: () => InferLane<Request>,
    readonly requests: RequestRing<Request>,
  ) {}

  async start(ended: RequestEnded): Promise<void> {
    this.#pacer = new Pacer(this.settings.arrivals, (timesMs) => {
      for (const dueMs of timesMs) this.#due(dueMs, ended)
    })
    await this.#pacer.started
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#pacer?.stop()
    for (const lane of this.#lanes) lane.close()
  }

  #due(dueMs: number, ended: RequestEnded): void {
    const lane = this.#idle.pop() ?? this.#another()
    if (lane === undefined) this.#waiting.push(dueMs)
    else this.#send(lane, dueMs, ended)
  }

  #another(): InferLane<Request> | undefined {
    if (this.#lanes.length >= this.settings.mostUnderWay) return undefined
    const lane = this.lane()
    this.#lanes.push(lane)
    return lane
  }

  #send(lane: InferLane<Request>, dueMs: number, ended: RequestEnded): void {
    lane.send(this.requests.next(), false, (outcome) => {
      if (this.#stopped) return
      ended(dueMs, outcome)
      const next = this.#nextWaiting()
      if (next === undefined) this.#idle.push(lane)
      else this.#send(lane, next, ended)
    })
  }

  #nextWaiting(): number | undefined {
    if (this.#firstWaiting === this.#waiting.length) return undefined
    const next = this.#waiting[this.#firstWaiting++]
    if (this.#firstWaiting === this.#waiting.length || this.#firstWaiting > 4_096) {
      this.#waiting = this.#waiting.slice(this.#firstWaiting)
      this.#firstWaiting = 0
    }
    return next
  }
}
