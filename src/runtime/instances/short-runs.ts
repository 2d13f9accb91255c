import { WakefulLoop } from '../../lifecycle/wakeful-loop.js'

/** A run shorter than this is about as long as the way to its thread and back. */
const shortRunMs = 0.5

/** A run shorter than this has answered before a loop that went to sleep would be awake again. */
const instantRunMs = 0.1
/** A multiple of what such a run and the way to its thread and back take. */
const awakeMs = 0.25

/**
 * What is done for a model whose runs are so short that the way to its thread counts: an instance is given the next run before it has
 * answered the last, so that it does not stand idle while the answer travels. Where runs are over in an instant, the loop stays awake
 * for their answers.
 */
export class ShortRuns<Result> {
  readonly #wakeful = new WakefulLoop(awakeMs)
  #meanMs = Infinity

  /** @param runMs - how long the run took that gave a result, without the way. */
  constructor(readonly runMs: (result: Result) => number) {}

  /** A run more may wait behind one that has begun. */
  get takeAhead(): boolean {
    return this.#meanMs < shortRunMs
  }

  /** A run ended well. */
  ended(result: Result): void {
    const ms = this.runMs(result)
    this.#meanMs = this.#meanMs === Infinity ? ms : this.#meanMs * 0.9 + ms * 0.1
  }

  /** Settles as the run does. */
  awaited(run: Promise<Result>): Promise<Result> {
    return this.#meanMs < instantRunMs ? this.#awake(run) : run
  }

  async #awake(run: Promise<Result>): Promise<Result> {
    this.#wakeful.begin()
    try {
      return await run
    } finally {
      this.#wakeful.end()
    }
  }
}
