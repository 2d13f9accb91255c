import { nowMs } from '../../lifecycle/clock.js'

/** How far a search is, by what the trials of this run took. */
export class SearchPace {
  readonly #beganMs = nowMs()
  #fresh = 0
  #begun = 0

  constructor(
    readonly planned: number,
    readonly isExhaustive: boolean,
  ) {}

  text(done: number): string {
    return `trial ${done + 1} of ${this.isExhaustive ? '' : 'at most '}${this.planned}`
  }

  /** @param isKnown - it was measured by a run before this one. */
  begins(isKnown: boolean): void {
    this.#begun += 1
    if (!isKnown) this.#fresh += 1
  }

  get left(): string {
    if (this.#fresh < 2) return ''
    const eachMs = (nowMs() - this.#beganMs) / this.#fresh
    const minutes = (eachMs * (this.planned - this.#begun)) / 60_000
    return minutes < 1 ? '; less than a minute left' : `; about ${Math.ceil(minutes)} min left`
  }
}
