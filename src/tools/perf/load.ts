import type { LaneOutcome, PreparedRequest } from '../client/infer-lane.js'

/** Requests one after another, from the first again after the last. */
export class RequestRing<Request = PreparedRequest> {
  #next = 0

  /** @param requests - at least one. */
  constructor(readonly requests: readonly Request[]) {}

  next(): Request {
    const request = this.requests[this.#next]!
    this.#next = (this.#next + 1) % this.requests.length
    return request
  }
}

/**
 * Told of every request that has ended.
 *
 * @param fromMs - monotonic time from which its latency counts: when it was sent, when it should have been, or when its picture was there.
 */
export type RequestEnded = (fromMs: number, outcome: LaneOutcome) => void

/** Requests to a server at one level, from the start until it is stopped. */
export interface Load {
  /** Resolves when it runs as it will go on; what ends before is told as well. */
  start(ended: RequestEnded): void | Promise<void>
  /** Sends no more and ends what is under way, of which nothing is told. Idempotent, never rejects. */
  stop(): Promise<void>
  /** What the load itself lost since it was last asked, such as pictures for which there was no time. */
  takeDropped?(): number | Promise<number>
}
