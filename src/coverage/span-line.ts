import type { CoverageSpan } from '../vision/coverage.js'
import type { Stretch } from './camera-coverage.js'

/**
 * Stretches of one camera's monotonic time as spans of wall time. Each border is stamped once, for what ends there and what begins, so that
 * spans touch whatever the clock does: one that is set forward makes the span longer in which that happened, and one that is set back is
 * waited for.
 */
export class SpanLine {
  #open: CoverageSpan | undefined

  /** @param startMs - wall time at which its first span begins. */
  constructor(
    readonly cameraId: string,
    readonly startMs: number,
  ) {}

  /** What may grow still; undefined before anything is settled. */
  get open(): CoverageSpan | undefined {
    return this.#open
  }

  /** @param offsetMs - from monotonic to wall time, now. @returns the spans that ended with it. */
  add(stretches: readonly Stretch[], offsetMs: number): readonly CoverageSpan[] {
    const ended: CoverageSpan[] = []
    for (const stretch of stretches) {
      const { toMs, cause } = this.#spanOf(stretch, offsetMs)
      const before = this.#open
      if (before?.cause === cause) this.#open = { ...before, toMs }
      else {
        if (before && before.toMs > before.fromMs) ended.push(before)
        this.#open = { cameraId: this.cameraId, fromMs: before?.toMs ?? this.startMs, toMs, cause }
      }
    }
    return ended
  }

  /** The open span and what is not settled behind it, as they stand. */
  with(stretches: readonly Stretch[], offsetMs: number): readonly CoverageSpan[] {
    const copy = new SpanLine(this.cameraId, this.startMs)
    copy.#open = this.#open
    const ended = copy.add(stretches, offsetMs)
    return copy.#open && copy.#open.toMs > copy.#open.fromMs ? [...ended, copy.#open] : ended
  }

  #spanOf({ toMs, cause }: Stretch, offsetMs: number): Pick<CoverageSpan, 'toMs' | 'cause'> {
    const sinceMs = this.#open?.toMs ?? this.startMs
    return { toMs: Math.max(sinceMs, Math.round(toMs + offsetMs)), cause }
  }
}
