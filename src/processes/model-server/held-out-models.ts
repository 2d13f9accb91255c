import type { RunRecord } from './run-record.js'

/** So many ends of the process in that time, with the same model at work in each, are no accident. */
const mostEnds = 3
const endsWindowMs = 600_000

/** Models that the model server is started without, since they ended it. */
export class HeldOutModels {
  readonly #reasons = new Map<string, string>()
  /** Ends of the process that nothing explains, with the models that were at work and how often each had run. */
  #ends: readonly Readonly<{ atMs: number; active: Readonly<Record<string, number>> }>[] = []

  constructor(readonly nowMs: () => number) {}

  /** With the reasons. */
  get all(): readonly (readonly [model: string, reason: string])[] {
    return [...this.#reasons]
  }

  /**
   * The process has ended.
   *
   * @param record - what it was at; undefined where that is not known.
   * @param reason - what ended it, for people.
   * @returns the model that is held out for it, with why; undefined where none is.
   */
  ended(
    record: RunRecord | undefined,
    reason: string,
  ): Readonly<{ model: string; reason: string }> | undefined {
    if (record === undefined) return undefined
    if (record.over !== null) return this.#hold(record.over.model, record.over.reason)
    const nowMs = this.nowMs()
    this.#ends = [
      ...this.#ends.filter(({ atMs }) => nowMs - atMs < endsWindowMs),
      { atMs: nowMs, active: record.active },
    ]
    const suspect = this.#suspect(Object.keys(record.active))
    if (suspect === undefined) return undefined
    const seconds = endsWindowMs / 1_000
    const held = this.#hold(
      suspect,
      `the model server ended ${mostEnds} times within ${seconds} s while it was at work, last by ${reason}; it is not loaded again before it is asked for or changes`,
    )
    // The others that were at work are not judged by what this one has done.
    this.#ends = this.#ends.filter(({ active }) => !Object.hasOwn(active, suspect))
    return held
  }

  /** It is tried again. */
  release(model: string): void {
    this.#reasons.delete(model)
    this.#ends = this.#ends.map(({ atMs, active }) => {
      const { [model]: _, ...others } = active
      return { atMs, active: others }
    })
  }

  #hold(model: string, reason: string): Readonly<{ model: string; reason: string }> {
    this.#reasons.set(model, reason)
    return { model, reason }
  }

  /** One that is at work in each of many ends; of several, the one that got along with the fewest runs: it ended the process sooner. */
  #suspect(models: readonly string[]): string | undefined {
    const runs = (model: string) => this.#ends.reduce((sum, { active }) => sum + (active[model] ?? 0), 0)
    return models
      .filter((model) => this.#ends.filter(({ active }) => Object.hasOwn(active, model)).length >= mostEnds)
      .sort((a, b) => runs(a) - runs(b))[0]
  }
}
