import { describe, expect, it } from 'vitest'
import { nowMs } from '../../../src/lifecycle/clock.js'
import { latencyFault, TrialLatency, worstOf } from '../../../src/processes/control/trial-latency.js'

const map = (values: Readonly<Record<string, number>>) => new Map(Object.entries(values))

describe('what is measured', () => {
  it('is the p99 of each camera, of frames that arrived within the time', () => {
    const latency = new TrialLatency()
    const arrivedMs = nowMs()
    for (const value of [30, 64]) latency.add({ cameraId: 'a', arrivedMs }, value)
    latency.add({ cameraId: 'a', arrivedMs: arrivedMs - 10_000 }, 900)
    latency.add({ cameraId: 'b', arrivedMs }, 50)
    latency.end()
    latency.add({ cameraId: 'a', arrivedMs }, 900)
    expect(latency.p99Ms).toEqual(map({ a: 64, b: 50 }))
  })

  it('may begin later', () => {
    const latency = new TrialLatency(60_000)
    latency.add({ cameraId: 'a', arrivedMs: nowMs() }, 900)
    latency.add({ cameraId: 'a', arrivedMs: nowMs() + 61_000 }, 41)
    expect(latency.p99Ms).toEqual(map({ a: 41 }))
  })
})

describe('what is compared', () => {
  it('is the worst camera before with the worst in the trial, of those that were live before', () => {
    expect(worstOf(map({ a: 40, b: 60.128 }), map({ a: 64, b: 50, later: 900 }))).toEqual({
      before: 60.13,
      after: 64,
    })
    expect(worstOf(map({}), map({ later: 900 }))).toEqual({ before: null, after: null })
  })

  it('is a fault beyond the ratio, but for 5 ms', () => {
    expect(latencyFault({ before: 60, after: 66 }, 1.1)).toBeUndefined()
    expect(latencyFault({ before: 60, after: 70 }, 1.1)).toBe(
      'p99 of capture to publish went from 60 ms to 70 ms, and maxP99Ratio is 1.1',
    )
    expect(latencyFault({ before: 4, after: 9 }, 1)).toBeUndefined()
    expect(latencyFault({ before: 4, after: 9.1 }, 1)).toBeDefined()
  })

  it('is a fault where there is no result at all, but not where there was none before', () => {
    expect(latencyFault({ before: 40, after: null }, 100)).toBe(
      'no camera that was live had a result in the trial',
    )
    expect(latencyFault({ before: null, after: null }, 1)).toBeUndefined()
  })
})
