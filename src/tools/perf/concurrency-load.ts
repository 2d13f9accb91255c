import type { InferLane, LaneOutcome, PreparedRequest } from '../client/infer-lane.js'
import type { Load, RequestEnded, RequestRing } from './load.js'

/** After a failure, so that a server that refuses is not stormed. */
const afterFailureMs = 100

/** So many requests under way at all times: each answer is followed by the next request. */
export class ConcurrencyLoad<Request = PreparedRequest> implements Load {
  readonly #lanes: readonly InferLane<Request>[]
  readonly #timers = new Set<NodeJS.Timeout>()
  #stopped = false

  constructor(
    concurrency: number,
    lane: () => InferLane<Request>,
    readonly requests: RequestRing<Request>,
  ) {
    this.#lanes = Array.from({ length: concurrency }, lane)
  }

  start(ended: RequestEnded): void {
    for (const lane of this.#lanes) this.#ask(lane, ended)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    for (const timer of this.#timers) clearTimeout(timer)
    for (const lane of this.#lanes) lane.close()
  }

  #ask(lane: InferLane<Request>, ended: RequestEnded): void {
    const { requests } = this
    const done = (outcome: LaneOutcome): void => {
      if (this.#stopped) return
      ended(outcome.sentMs, outcome)
      if (outcome.error === undefined) lane.send(requests.next(), false, done)
      else this.#later(() => lane.send(requests.next(), false, done))
    }
    lane.send(requests.next(), false, done)
  }

  #later(send: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      if (!this.#stopped) send()
    }, afterFailureMs)
    this.#timers.add(timer)
  }
}
