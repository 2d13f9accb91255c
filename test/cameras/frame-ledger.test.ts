import { describe, expect, it } from 'vitest'
import { FrameLedger } from '../../src/cameras/frame-ledger.js'
import { emptyFrameCounts, endedFrames, type FrameCounts } from '../../src/vision/accounting.js'
import { createServiceMetrics } from '../../src/metrics/service-metrics.js'

function counts(part: Partial<FrameCounts>): FrameCounts {
  return { ...emptyFrameCounts(), ...part }
}

describe('FrameLedger', () => {
  it('books what was in a dead engine as lost, so that every received frame has ended', () => {
    const ledger = new FrameLedger('dock', createServiceMetrics())
    ledger.report(counts({ received: 10, inferred: 6, superseded: 1 }))
    ledger.close()
    expect(ledger.total).toEqual(counts({ received: 10, inferred: 6, superseded: 1, lost: 3 }))
    expect(endedFrames(ledger.total)).toBe(ledger.total.received)
  })

  it('goes on behind the accounts of the engine before', () => {
    const ledger = new FrameLedger('dock', createServiceMetrics())
    ledger.report(counts({ received: 10, inferred: 10 }))
    ledger.close()
    ledger.report(counts({ received: 2, inferred: 1 }))
    expect(ledger.total).toEqual(counts({ received: 12, inferred: 11 }))
  })

  it('passes over a report that comes after a newer one', () => {
    const ledger = new FrameLedger('dock', createServiceMetrics())
    ledger.report(counts({ received: 10, inferred: 9 }))
    ledger.report(counts({ received: 10, inferred: 8 }))
    ledger.report(counts({ received: 9, inferred: 8 }))
    expect(ledger.total).toEqual(counts({ received: 10, inferred: 9 }))
  })

  it('shows in the metrics what it holds', async () => {
    const metrics = createServiceMetrics()
    const ledger = new FrameLedger('dock', metrics)
    const shed = { ...emptyFrameCounts().shed, stopping: 2 }
    ledger.report(counts({ received: 7, inferred: 4, shed }))
    const text = await metrics.registry.metrics()
    expect(text).toContain('gantry_frames_received_total{camera="dock"} 7')
    expect(text).toContain('gantry_frames_total{camera="dock",state="inferred",cause=""} 4')
    expect(text).toContain('gantry_frames_total{camera="dock",state="shed",cause="stopping"} 2')
    expect(text).toContain('gantry_frames_in_flight{camera="dock"} 1')
  })
})
