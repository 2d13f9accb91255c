import type { PictureTrouble, PictureVerdict } from '../vision/coverage.js'

type Change = Readonly<{ atMs: number; trouble: PictureTrouble | null }>

/** What the pictures of one camera showed when, as far as it is settled: verdicts come after the pictures that they are of. */
export class PictureLine {
  /** In order of time; the first holds from the beginning of what is asked for. */
  #changes: Change[] = [{ atMs: -Infinity, trouble: null }]
  #knownMs = -Infinity
  #doubtMs: number | null = null

  /** @param atMs - when it was told: what began before is in it. */
  told({ trouble, sinceMs, doubtMs }: PictureVerdict, atMs: number): void {
    this.#knownMs = Math.max(this.#knownMs, atMs)
    this.#doubtMs = doubtMs
    this.#changes = this.#changes.filter((change) => change.atMs < sinceMs)
    if (this.#changes.at(-1)?.trouble !== trouble) this.#changes.push({ atMs: sinceMs, trouble })
  }

  /** No pictures come any more: what was in doubt stays as it was taken to be. */
  ends(): void {
    this.#doubtMs = null
    this.#knownMs = Infinity
  }

  /** Pictures come again, and nothing is known of them yet. */
  begins(): void {
    this.#knownMs = -Infinity
  }

  /** Until when what it says does not change any more. */
  get sureMs(): number {
    return Math.min(this.#knownMs, this.#doubtMs ?? Infinity)
  }

  /** From when it is in doubt; null where it is not. */
  get doubtMs(): number | null {
    return this.#doubtMs
  }

  /** The stretch of time by what was wrong, in order and without holes. */
  within(
    fromMs: number,
    toMs: number,
  ): readonly Readonly<{ fromMs: number; toMs: number; trouble: PictureTrouble | null }>[] {
    return this.#changes.flatMap(({ atMs, trouble }, index) => {
      const begins = Math.max(fromMs, atMs)
      const ends = Math.min(toMs, this.#changes[index + 1]?.atMs ?? Infinity)
      return begins < ends ? [{ fromMs: begins, toMs: ends, trouble }] : []
    })
  }

  /** What lies before is not asked for again. */
  forget(beforeMs: number): void {
    const first = this.#changes.findLastIndex(({ atMs }) => atMs <= beforeMs)
    if (first > 0) this.#changes.splice(0, first)
  }
}
