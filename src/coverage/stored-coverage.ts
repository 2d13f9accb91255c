import type { CoverageSpan } from '../vision/coverage.js'
import type { CoverageRange, CoverageStore } from './coverage-store.js'
import { MemoryCoverageStore } from './memory-coverage-store.js'

/** What is asked of the store of records. */
export type CoverageFile = Readonly<{
  writeCoverage(spans: readonly CoverageSpan[]): void
  coverage(
    cameraId: string | undefined,
    fromMs: number,
    toMs: number,
    limit: number,
  ): Promise<readonly CoverageSpan[]>
  coverageEnds(): Promise<ReadonlyMap<string, number>>
}>

/** The time of cameras over restarts: what this run tells is in memory too, what was before it in the file alone. */
export class StoredCoverage implements CoverageStore {
  readonly #run = new MemoryCoverageStore()

  constructor(readonly file: CoverageFile) {}

  /** Of none, where the file cannot be read: its cameras begin anew. */
  lastEnds(): Promise<ReadonlyMap<string, number>> {
    return this.file.coverageEnds().catch(() => new Map<string, number>())
  }

  replace(spans: readonly CoverageSpan[]): void {
    this.#run.replace(spans)
    if (spans.length > 0) this.file.writeCoverage(spans)
  }

  /** @throws StoreReadError */
  async range(range: CoverageRange, most: number): Promise<readonly CoverageSpan[]> {
    const [stored, ofRun] = await Promise.all([
      this.file.coverage(range.cameraId, range.fromMs, range.toMs, most + 1),
      this.#run.range(range, most),
    ])
    const before = stored.filter(({ cameraId, fromMs }) => fromMs < this.#run.firstOf(cameraId))
    const both = [...before, ...ofRun].sort((a, b) => compare(a.cameraId, b.cameraId) || a.fromMs - b.fromMs)
    return both.slice(0, most + 1)
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}
