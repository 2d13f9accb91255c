import { emptyFrameCounts, endedFrames, shedCauses, type FrameCounts } from '../vision/accounting.js'
import type { ServiceMetrics } from '../metrics/service-metrics.js'

const endings = ['inferred', 'reused', 'superseded', 'suspect', 'lost'] as const

function sum(a: FrameCounts, b: FrameCounts): FrameCounts {
  const total = emptyFrameCounts()
  total.received = a.received + b.received
  for (const ending of endings) total[ending] = a[ending] + b[ending]
  for (const cause of shedCauses) total.shed[cause] = a.shed[cause] + b.shed[cause]
  return total
}

/**
 * Accounts of one camera's frames over the lives of engines.
 *
 * An engine counts from zero; what it reported last stays true when it dies, and what it had received but not ended by then is lost.
 * At any time `received = inferred + reused + superseded + suspect + shed + lost + in flight`.
 */
export class FrameLedger {
  #closed = emptyFrameCounts()
  #open = emptyFrameCounts()

  constructor(
    readonly cameraId: string,
    readonly metrics: Pick<ServiceMetrics, 'framesReceived' | 'framesEnded' | 'framesInFlight'>,
  ) {}

  get total(): FrameCounts {
    return sum(this.#closed, this.#open)
  }

  /** Takes the engine's counts; they never go back within one engine's life, so an older report that comes late is passed over. */
  report(counts: FrameCounts): void {
    if (counts.received < this.#open.received || endedFrames(counts) < endedFrames(this.#open)) return
    this.#count(this.#open, counts)
    this.#open = counts
  }

  /** The engine is gone, or has let the camera go: what had not ended is lost. */
  close(): void {
    const lost = this.#open.received - endedFrames(this.#open)
    const final = { ...this.#open, lost: this.#open.lost + lost }
    this.#count(this.#open, final)
    this.#closed = sum(this.#closed, final)
    this.#open = emptyFrameCounts()
  }

  #count(before: FrameCounts, after: FrameCounts): void {
    const { framesReceived, framesEnded, framesInFlight } = this.metrics
    const camera = this.cameraId
    framesReceived.inc({ camera }, after.received - before.received)
    for (const state of endings) framesEnded.inc({ camera, state, cause: '' }, after[state] - before[state])
    for (const cause of shedCauses) {
      framesEnded.inc({ camera, state: 'shed', cause }, after.shed[cause] - before.shed[cause])
    }
    framesInFlight.set({ camera }, after.received - endedFrames(after))
  }
}
