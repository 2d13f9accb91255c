import type { CoverageSpan } from '../vision/coverage.js'

const writeWithinMs = 500

/** Spans of cameras on their way to the file: many at once, as none of them is urgent. */
export class CoverageWrites {
  #waiting: (readonly CoverageSpan[])[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(readonly write: (spans: readonly (readonly CoverageSpan[])[]) => void) {}

  /** Written within half a second. */
  push(spans: readonly CoverageSpan[]): void {
    this.#waiting.push(spans)
    this.#timer ??= setTimeout(() => this.flush(), writeWithinMs)
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#waiting.length > 0) this.write(this.#waiting)
    this.#waiting = []
  }
}
