import { Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { CameraCoverage } from '../../src/coverage/camera-coverage.js'
import { CoverageLedger } from '../../src/coverage/coverage-ledger.js'
import { MemoryCoverageStore } from '../../src/coverage/memory-coverage-store.js'
import { createServiceMetrics } from '../../src/metrics/service-metrics.js'
import { blindCauses, type CoverageSpan } from '../../src/vision/coverage.js'
import { metricIn } from '../support/service.js'

const startWallMs = 1_800_000_000_000

/** A ledger of cameras that give a picture each 200 ms, by clocks of its own. */
class Rig {
  nowMs = 500
  wallMs = startWallMs
  readonly registry = new Registry()
  readonly ended: CoverageSpan[] = []
  readonly ledger: CoverageLedger
  readonly cameras = new Map<string, CameraCoverage>()

  constructor(readonly store = new MemoryCoverageStore()) {
    this.ledger = new CoverageLedger({
      store,
      metrics: createServiceMetrics(this.registry),
      ended: (span) => this.ended.push(span),
      nowMs: () => this.nowMs,
      wallMs: () => this.wallMs,
    })
  }

  add(id: string): CameraCoverage {
    const coverage = new CameraCoverage(this.nowMs, 'service_down', () => 200)
    this.cameras.set(id, coverage)
    coverage.status('live', this.nowMs)
    return coverage
  }

  /** Seconds go by with pictures of these cameras. */
  pass(seconds: number, ids: readonly string[] = [...this.cameras.keys()]): void {
    for (let second = 0; second < seconds; second += 1) {
      for (let frame = 1; frame <= 5; frame += 1)
        for (const id of ids)
          this.cameras.get(id)?.lookedAt({
            arrivedMs: this.nowMs + frame * 200,
            isSuspect: false,
            received: this.nowMs,
            gapsMs: [200],
          })
      this.nowMs += 1_000
      this.wallMs += 1_000
      const picture = { trouble: null, sinceMs: 0, doubtMs: null }
      for (const coverage of this.cameras.values()) coverage.told({ received: 0, picture }, this.nowMs)
      this.commit()
    }
  }

  commit(): void {
    this.ledger.commit([...this.cameras].map(([id, coverage]) => ({ id, coverage, wasThere: true })))
  }

  async spans(cameraId: string): Promise<readonly (readonly [string | null, number, number])[]> {
    const spans = await this.store.range({ cameraId, fromMs: 0, toMs: Infinity }, 1_000)
    return spans.map(({ cause, fromMs, toMs }) => [cause, fromMs - startWallMs, toMs - startWallMs])
  }

  /** Seconds by the metrics. */
  async counted(cameraId: string): Promise<Readonly<{ watched: number; blind: number }>> {
    this.ledger.measure()
    const page = await this.registry.metrics()
    const of = (state: string) =>
      metricIn(
        page,
        new RegExp(`gantry_coverage_seconds_total\\{camera="${cameraId}",state="${state}",cause="\\w*"\\}`),
      )
    return { watched: of('watched'), blind: of('blind') }
  }
}

describe('CoverageLedger', () => {
  it('R125: keeps, once a second, all time until now, watched and blind', async () => {
    const rig = new Rig()
    rig.add('dock-1')
    rig.pass(10)
    rig.pass(10, [])
    rig.pass(10)
    expect(await rig.spans('dock-1')).toEqual([
      ['service_down', 0, 200],
      [null, 200, 10_200],
      ['stalled', 10_200, 20_200],
      [null, 20_200, 30_000],
    ])
    const { watched, blind } = await rig.counted('dock-1')
    expect(watched).toBeCloseTo(19.8, 3)
    expect(blind).toBeCloseTo(10.2, 3)
  })

  it('R125: watched and blind together are the time since the start at every scrape, and no counter goes back', async () => {
    const rig = new Rig()
    rig.add('dock-1')
    let before = { watched: 0, blind: 0 }
    for (let second = 1; second <= 40; second += 1) {
      rig.pass(1, second % 13 < 6 ? ['dock-1'] : [])
      const counted = await rig.counted('dock-1')
      expect(counted.watched).toBeGreaterThanOrEqual(before.watched)
      expect(counted.blind).toBeGreaterThanOrEqual(before.blind)
      // While it is not known yet whether more pictures come, the time since the last one waits.
      expect(counted.watched + counted.blind).toBeGreaterThan(second - 4.2)
      expect(counted.watched + counted.blind).toBeLessThan(second + 0.001)
      before = counted
    }
  })

  it('R125: tells each span when it ends, and the last one when the camera is removed', async () => {
    const rig = new Rig()
    rig.add('dock-1')
    rig.pass(5)
    rig.pass(6, [])
    rig.pass(5)
    rig.ledger.removed('dock-1')
    rig.cameras.clear()
    rig.pass(2)
    expect(
      rig.ended.map(({ cause, fromMs, toMs }) => [cause, fromMs - startWallMs, toMs - startWallMs]),
    ).toEqual([
      ['service_down', 0, 200],
      [null, 200, 5_200],
      ['stalled', 5_200, 11_200],
      [null, 11_200, 16_000],
    ])
    expect(await rig.spans('dock-1')).toHaveLength(4)
  })

  it('R129: what was not kept when the service was killed is blind until pictures flow again', async () => {
    const killed = new Rig()
    killed.add('dock-1')
    killed.add('dock-2')
    killed.pass(7)
    const next = new Rig(killed.store)
    next.nowMs = 90_000
    next.wallMs = startWallMs + 27_400
    await next.ledger.begin()
    next.add('dock-1')
    next.pass(3, [])
    next.pass(5)
    expect(await next.spans('dock-1')).toEqual([
      ['service_down', 0, 200],
      [null, 200, 7_000],
      ['service_down', 7_000, 30_600],
      [null, 30_600, 35_400],
    ])
    const { blind } = await next.counted('dock-1')
    expect(blind).toBeCloseTo(23.6, 3)
    expect((await next.spans('dock-2')).at(-1)).toEqual([null, 200, 7_000])
  })

  it('R129: a camera that had left before the service ended begins anew', async () => {
    const before = new Rig()
    before.add('dock-1')
    before.add('dock-2')
    before.pass(5)
    before.ledger.removed('dock-2')
    before.cameras.delete('dock-2')
    before.pass(60)
    const next = new Rig(before.store)
    next.wallMs = startWallMs + 100_000
    await next.ledger.begin()
    next.add('dock-2')
    next.pass(5)
    expect((await next.spans('dock-2')).slice(-2)).toEqual([
      ['service_down', 100_000, 100_200],
      [null, 100_200, 105_000],
    ])
  })

  it('R130: a clock that is set leaves no hole and no overlap', async () => {
    const rig = new Rig()
    rig.add('dock-1')
    rig.pass(5)
    rig.wallMs += 3_600_000
    rig.pass(5, [])
    rig.pass(5)
    rig.wallMs -= 7_200_000
    rig.pass(5, [])
    rig.pass(5)
    const spans = await rig.spans('dock-1')
    spans.slice(1).forEach(([, fromMs], index) => expect(fromMs).toBe(spans[index]?.[2]))
    const { watched, blind } = await rig.counted('dock-1')
    expect(watched + blind).toBeCloseTo(25, 3)
  })

  it('has a series of each cause from the start', async () => {
    const rig = new Rig()
    rig.add('dock-1')
    rig.commit()
    const page = await rig.registry.metrics()
    for (const cause of blindCauses)
      expect(page).toContain(
        `gantry_coverage_seconds_total{camera="dock-1",state="blind",cause="${cause}"} 0`,
      )
  })
})
