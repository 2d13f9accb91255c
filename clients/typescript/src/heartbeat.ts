/** From one question to the next. */
const askEveryMs = 3_000
/** An answer that is longer on its way is spoken of. */
const quietAfterMs = 2_000
/** Longest from question to answer; after that the line is dead. Grows for lines that are only slow. */
const [firstPatienceMs, mostPatienceMs] = [5_000, 20_000]
/** A line that lived so long was no slow one. */
const healthyAfterMs = 60_000
/** Ticks come once a second: after such a pause the tab slept, and what had come meanwhile is still on its way to us. */
const sleptMs = 4_000

/** `ask`: send a ping. `quiet`: its answer takes long. `dead`: open the line anew. */
export type Verdict = 'fine' | 'ask' | 'quiet' | 'dead'

/**
 * Tells a quiet line from a dead one, for a page that cannot see the pings of WebSocket: it asks, and anything that comes is an
 * answer. A line that dies is found within 9 s. Reads no clock: times are passed in, monotonic, in ms.
 */
export class Heartbeat {
  #bornMs = 0
  #lastTickMs = 0
  #lastAskMs = 0
  #unanswered = false
  #heardMs = 0
  #patienceMs = firstPatienceMs

  /** Time of the last sign of life. */
  get heardMs(): number {
    return this.#heardMs
  }

  /** A new line, which has just said its first word. */
  begin(atMs: number): void {
    this.#bornMs = this.#lastTickMs = this.#heardMs = atMs
    this.#lastAskMs = Number.NEGATIVE_INFINITY
    this.#unanswered = false
  }

  heard(atMs: number): void {
    this.#heardMs = atMs
    this.#unanswered = false
    if (atMs - this.#bornMs >= healthyAfterMs) this.#patienceMs = firstPatienceMs
  }

  /** Once a second while the line is open. */
  tick(atMs: number): Verdict {
    const sleptFor = atMs - this.#lastTickMs
    this.#lastTickMs = atMs
    if (sleptFor >= sleptMs || !this.#unanswered)
      return sleptFor >= sleptMs || atMs - this.#lastAskMs >= askEveryMs ? this.ask(atMs) : 'fine'
    const waitedMs = atMs - this.#lastAskMs
    if (waitedMs >= this.#patienceMs) {
      this.#patienceMs = Math.min(mostPatienceMs, this.#patienceMs * 2)
      return 'dead'
    }
    return waitedMs >= quietAfterMs ? 'quiet' : 'fine'
  }

  /** Asks now, whatever was asked before: after the network or the tab came back. */
  ask(atMs: number): 'ask' {
    this.#lastAskMs = atMs
    this.#unanswered = true
    return 'ask'
  }
}
