import { expect, it } from 'vitest'
import { nowMs } from '../../../src/lifecycle/clock.js'
import { TrialLatency } from '../../../src/processes/control/trial-latency.js'

function measured(beforeMs: Readonly<Record<string, number>>, afterMs: Readonly<Record<string, number[]>>) {
  const latency = new TrialLatency(new Map(Object.entries(beforeMs)))
  const arrivedMs = nowMs()
  for (const [cameraId, values] of Object.entries(afterMs))
    for (const value of values) latency.add({ cameraId, arrivedMs }, value)
  return latency
}

it('compares the worst camera before with the worst in the trial', () => {
  const latency = measured({ a: 40, b: 60 }, { a: [30, 64], b: [50, 50] })
  expect(latency.figures).toEqual({ before: 60, after: 64 })
  expect(latency.fault(1.1)).toBeUndefined()
  const slow = measured({ a: 40, b: 60 }, { a: [70], b: [50] })
  expect(slow.fault(1.1)).toBe('p99 of capture to publish went from 60 ms to 70 ms, and maxP99Ratio is 1.1')
  expect(slow.fault(1.2)).toBeUndefined()
})

it('lets 5 ms more pass, whatever share of little that is', () => {
  expect(measured({ a: 4 }, { a: [9] }).fault(1)).toBeUndefined()
  expect(measured({ a: 4 }, { a: [9.1] }).fault(1)).toBeDefined()
})

it('leaves out frames of before the trial, and cameras that were not live then', () => {
  const arrivedMs = nowMs()
  const latency = new TrialLatency(new Map([['a', 40]]))
  latency.add({ cameraId: 'a', arrivedMs: arrivedMs - 1_000 }, 900)
  latency.add({ cameraId: 'new', arrivedMs: nowMs() }, 900)
  latency.add({ cameraId: 'a', arrivedMs: nowMs() }, 41)
  expect(latency.figures).toEqual({ before: 40, after: 41 })
})

it('takes no result at all for a fault, but not where there was none before', () => {
  expect(measured({ a: 40 }, {}).fault(100)).toBe('no camera that was live had a result in the trial')
  expect(measured({}, {}).fault(1)).toBeUndefined()
})
