import type { ServiceMetrics } from '../metrics/service-metrics.js'
import { blindCauses, type BlindCause, type CoverageSpan } from '../vision/coverage.js'
import type { CameraCoverage, Stretch } from './camera-coverage.js'
import type { CoverageStore } from './coverage-store.js'
import { SpanLine } from './span-line.js'

/** Of a run that ended with the camera: what lies further back than this before its end was not seen by that run. */
const sameRunMs = 5_000

export type CoveredCamera = Readonly<{
  id: string
  coverage: CameraCoverage
  /** It was there at the start of the service, so that what lies before it is time of the camera too. */
  wasThere: boolean
}>

export type CoverageLedgerDeps = Readonly<{
  store: CoverageStore
  metrics: Pick<ServiceMetrics, 'coverageSeconds'>
  /** A span has ended. */
  ended: (span: CoverageSpan) => void
  nowMs: () => number
  wallMs: () => number
}>

type Kept = {
  readonly camera: CoveredCamera
  readonly line: SpanLine
  /** Milliseconds by cause; '' is watched. */
  readonly settledMs: Map<BlindCause | '', number>
  readonly countedMs: Map<BlindCause | '', number>
}

/** Keeps the time of all cameras: brings it to the store once a second, and tells spans that end. */
export class CoverageLedger {
  readonly #cameras = new Map<string, Kept>()
  #lastEnds: ReadonlyMap<string, number> = new Map()

  constructor(readonly deps: CoverageLedgerDeps) {}

  /** Reads where an earlier run ended. */
  async begin(): Promise<void> {
    this.#lastEnds = await this.deps.store.lastEnds()
  }

  /** Settles what is known by now, of cameras that are new too, and keeps it. */
  commit(cameras: Iterable<CoveredCamera>): void {
    for (const camera of cameras) {
      const known = this.#cameras.get(camera.id)
      if (known !== undefined && known.camera.coverage !== camera.coverage) this.removed(camera.id)
      if (known?.camera.coverage !== camera.coverage) this.#cameras.set(camera.id, this.#begun(camera))
    }
    for (const kept of this.#cameras.values()) this.#settle(kept)
  }

  /** Its time ends here. */
  removed(id: string): void {
    const kept = this.#cameras.get(id)
    if (kept === undefined) return
    this.#cameras.delete(id)
    this.#settle(kept)
    const closed = this.#take(kept, kept.camera.coverage.open(this.deps.nowMs()))
    this.#count(kept, false)
    const last = [...closed, ...kept.line.with([], 0)]
    if (last.length > 0) this.deps.store.replace(last)
    for (const span of last) this.deps.ended(span)
  }

  /** Ends the time of all, as far as this run tells it. */
  end(): void {
    for (const id of [...this.#cameras.keys()]) this.removed(id)
  }

  /** Brings the metrics to now. What is in doubt is counted when it is sure, since a counter takes nothing back. */
  measure(): void {
    for (const kept of this.#cameras.values()) this.#count(kept, true)
  }

  #begun(camera: CoveredCamera): Kept {
    const { nowMs, wallMs } = this.deps
    const coverage = camera.coverage
    const startedMs = wallMs() - (nowMs() - coverage.startMs)
    const endMs = camera.wasThere ? this.#lastEnds.get(camera.id) : undefined
    const runEndMs = Math.max(...this.#lastEnds.values())
    const goesOn = endMs !== undefined && endMs >= runEndMs - sameRunMs && endMs <= startedMs
    const startMs = Math.round(goesOn ? endMs : startedMs)
    const settledMs = new Map<BlindCause | '', number>()
    if (goesOn) settledMs.set('service_down', startedMs - endMs)
    const { coverageSeconds } = this.deps.metrics
    // From 0, so that `increase()` sees the first.
    coverageSeconds.inc({ camera: camera.id, state: 'watched', cause: '' }, 0)
    for (const cause of blindCauses) coverageSeconds.inc({ camera: camera.id, state: 'blind', cause }, 0)
    return { camera, line: new SpanLine(camera.id, startMs), settledMs, countedMs: new Map() }
  }

  #settle(kept: Kept): void {
    const { store, ended, nowMs } = this.deps
    const { coverage } = kept.camera
    const atMs = nowMs()
    const closed = this.#take(kept, coverage.settle(atMs))
    const standing = kept.line.with(coverage.open(atMs), this.#offsetMs)
    const spans = [...closed, ...standing]
    if (spans.length > 0) store.replace(spans)
    for (const span of closed) ended(span)
  }

  #take({ line, settledMs }: Kept, stretches: readonly Stretch[]): readonly CoverageSpan[] {
    for (const { fromMs, toMs, cause } of stretches)
      settledMs.set(cause ?? '', (settledMs.get(cause ?? '') ?? 0) + toMs - fromMs)
    return line.add(stretches, this.#offsetMs)
  }

  #count({ camera, settledMs, countedMs }: Kept, withOpen: boolean): void {
    const totalMs = new Map(settledMs)
    if (withOpen)
      for (const { fromMs, toMs, cause } of camera.coverage.countable(this.deps.nowMs()))
        totalMs.set(cause ?? '', (totalMs.get(cause ?? '') ?? 0) + toMs - fromMs)
    for (const [cause, ms] of totalMs) {
      const more = ms - (countedMs.get(cause) ?? 0)
      if (more <= 0) continue
      countedMs.set(cause, ms)
      const state = cause === '' ? 'watched' : 'blind'
      this.deps.metrics.coverageSeconds.inc({ camera: camera.id, state, cause }, more / 1_000)
    }
  }

  get #offsetMs(): number {
    return this.deps.wallMs() - this.deps.nowMs()
  }
}
