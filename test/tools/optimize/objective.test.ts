import { describe, expect, it } from 'vitest'
import type { LevelResult } from '../../../src/tools/perf/measure-level.js'
import { scoreOf, worthOf } from '../../../src/tools/optimize/objective.js'

const level = (
  at: number,
  perSecond: number,
  p99Ms: number,
  more: Partial<LevelResult> = {},
): LevelResult => ({
  level: at,
  steady: true,
  cutShort: false,
  windows: 3,
  seconds: 1,
  requests: perSecond,
  errors: 0,
  inferencesPerSecond: perSecond,
  clientCores: 1,
  latencyUs: { mean: 0, min: 0, p50: (p99Ms / 2) * 1e3, p90: 0, p95: 0, p99: p99Ms * 1e3, max: 0 },
  splitUs: { clientWait: 0, clientSend: 0, network: 0, server: undefined, clientReceive: 0 },
  ...more,
})
const trial = (...levels: readonly LevelResult[]) =>
  ({ ok: true, levels, peakBytes: 100 * 1024 ** 2, loadMs: 1 }) as const
const throughput = { kind: 'throughput' } as const

describe('what a trial is worth', () => {
  const two = trial(level(2, 50, 40), level(4, 60, 90))

  it('is its best level', () => {
    expect(worthOf(two, throughput, {}, 'concurrency', 2)).toMatchObject({ level: 4, perSecond: 60 })
    expect(worthOf(two, { kind: 'latency' }, {}, 'concurrency', 2)).toMatchObject({ level: 2, p99Ms: 40 })
  })

  it('is the best among those that keep the limits', () => {
    expect(worthOf(two, throughput, { p99Ms: 50 }, 'concurrency', 2)).toMatchObject({ level: 2, broken: [] })
  })

  it('names the limits that are broken where none keeps them', () => {
    const limits = { p99Ms: 30, perSecond: 70, memoryBytes: 50 * 1024 ** 2 }
    expect(worthOf(two, throughput, limits, 'concurrency', 2)?.broken).toEqual([
      'p99 40.0 ms of 30',
      '50.0/s of 70',
      '100 MiB of 50',
    ])
  })

  it('is not usable where runs fail', () => {
    const failing = trial(level(1, 50, 40, { errors: 3, firstError: 'no' }))
    expect(worthOf(failing, throughput, {}, 'concurrency', 2)?.broken).toEqual(['3 of 53 runs fail: no'])
  })

  it('with a trace is what the processor could do, by the share that it took', () => {
    const quarter = trial(level(10, 10, 40, { clientCores: 0.5 }))
    expect(worthOf(quarter, throughput, {}, 'trace', 2)?.perSecond).toBe(40)
  })

  it('is nothing without a level', () => {
    expect(worthOf(trial(), throughput, {}, 'concurrency', 2)).toBeUndefined()
  })
})

describe('a score', () => {
  const worth = (perSecond: number, p99Ms: number, limits = {}) =>
    worthOf(trial(level(1, perSecond, p99Ms)), throughput, limits, 'concurrency', 2)!

  it('grows with the objective', () => {
    expect(scoreOf(worth(20, 10), throughput, {})).toBeGreaterThan(scoreOf(worth(10, 10), throughput, {}))
    const latency = { kind: 'latency' } as const
    expect(scoreOf(worth(1, 5), latency, {})).toBeGreaterThan(scoreOf(worth(1, 10), latency, {}))
  })

  it('weighs both', () => {
    const even = { kind: 'weighted', weight: 0.5 } as const
    expect(scoreOf(worth(20, 20), even, {})).toBeCloseTo(scoreOf(worth(10, 10), even, {}))
  })

  it('is lower the further a limit is broken', () => {
    const limits = { p99Ms: 50 }
    const scores = [40, 60, 120].map((p99Ms) => scoreOf(worth(30, p99Ms, limits), throughput, limits))
    expect(scores).toEqual(scores.toSorted((a, b) => b - a))
    expect(scores[0]! - scores[2]!).toBeCloseTo(Math.log(120 / 50))
  })
})
