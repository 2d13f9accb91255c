import { CoverageLedger, type CoveredCamera } from '../../coverage/coverage-ledger.js'
import type { CoverageStore } from '../../coverage/coverage-store.js'
import { timesOfCameras } from '../../coverage/coverage-sums.js'
import type { CameraDirectory } from '../../cameras/camera-directory.js'
import type { CoverageQuestion, CoverageView } from '../../api/gantry.js'
import { CoverageTooLongError } from '../../api/errors.js'
import { nowMs, wallMs } from '../../lifecycle/clock.js'
import { eventTypes } from '../../messages/cloud-event.js'
import { coverageMessage, coverageRecordId } from '../../messages/coverage-message.js'
import type { StoreRecord } from '../../store/record.js'
import type { ServiceMetrics } from '../../metrics/service-metrics.js'
import type { CoverageSpan } from '../../vision/coverage.js'

/** What is not kept yet when the service is killed is blind. */
const commitEveryMs = 1_000
/** Spans of one answer, and those that one is summed over. */
export const mostSpans = { told: 5_000, summed: 200_000 }

export type CoverageWatchDeps = Readonly<{
  directory: CameraDirectory
  store: CoverageStore
  metrics: Pick<ServiceMetrics, 'coverageSeconds'>
  ended: (span: CoverageSpan) => void
}>

/** Keeps the time of the cameras that there are, once a second, and answers who asks for it. */
export class CoverageWatch {
  readonly #ledger: CoverageLedger
  #timer: NodeJS.Timeout | undefined

  constructor(readonly deps: CoverageWatchDeps) {
    this.#ledger = new CoverageLedger({ ...deps, nowMs, wallMs })
  }

  async start(): Promise<void> {
    await this.#ledger.begin()
    this.#timer = setInterval(() => this.#commit(), commitEveryMs)
    this.#commit()
  }

  /** The time of all cameras ends. Idempotent. */
  close(): void {
    if (this.#timer === undefined) return
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#commit()
    this.#ledger.end()
  }

  removed(id: string): void {
    this.#ledger.removed(id)
  }

  measure(): void {
    this.#ledger.measure()
  }

  /** @throws CoverageTooLongError */
  async view({ cameraId, fromMs, toMs, withSpans, isForSums }: CoverageQuestion): Promise<CoverageView> {
    this.#commit()
    const range = { ...(cameraId === undefined ? {} : { cameraId }), fromMs, toMs }
    const most = withSpans && isForSums !== true ? mostSpans.told : mostSpans.summed
    const spans = await this.deps.store.range(range, most)
    if (spans.length > most) throw new CoverageTooLongError(most, withSpans)
    return { fromMs, toMs, items: timesOfCameras(spans, { fromMs, toMs, withSpans }) }
  }

  #commit(): void {
    if (this.#timer !== undefined) this.#ledger.commit(this.#cameras())
  }

  *#cameras(): Generator<CoveredCamera> {
    for (const { config, coverage, life } of this.deps.directory)
      yield { id: config.id, coverage, wasThere: life === 0 }
  }
}

/** What everybody is told of a span that has ended. */
export function coverageRecord(span: CoverageSpan): StoreRecord {
  return {
    id: coverageRecordId(span),
    type: eventTypes.coverage,
    cameraId: span.cameraId,
    seq: 0,
    timeMs: span.toMs,
    value: Buffer.from(JSON.stringify(coverageMessage(span))),
  }
}
