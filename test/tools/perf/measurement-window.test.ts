import { describe, expect, it } from 'vitest'
import { isSteady, MeasurementWindow, mergedWindow } from '../../../src/tools/perf/measurement-window.js'

const at = (perSecond: number, latency = 10) => ({ perSecond, latency })

describe('isSteady', () => {
  it.each([
    ['two windows are too few', [at(100), at(100)], false],
    ['three that agree', [at(100), at(105), at(110)], true],
    ['the last three count', [at(1), at(100), at(100), at(100)], true],
    ['one that is too fast', [at(100), at(100), at(111)], false],
    ['a latency that grows', [at(100, 10), at(100, 10), at(100, 11.1)], false],
    ['nothing in one', [at(0), at(0), at(0)], false],
  ])('%s', (_, figures, steady) => {
    expect(isSteady(figures, 0.1)).toBe(steady)
  })
})

const outcome = {
  sentMs: 1,
  writtenMs: 2,
  firstByteMs: 5,
  receivedMs: 7,
  error: undefined,
  answer: undefined,
}

it('counts latency from where it is told to, and errors apart', () => {
  const window = new MeasurementWindow()
  window.durationMs = 500
  window.add(1, outcome)
  window.add(-9, outcome)
  const error = Object.assign(new Error('no'), {
    code: 'GANTRY_MODEL_SERVER',
    hint: '',
    retryable: false,
    field: undefined,
  } as const)
  window.add(0, { ...outcome, error })
  expect([window.requests, window.errors, window.perSecond]).toEqual([2, 1, 4])
  expect([...window.latencies.sorted()]).toEqual([6, 16])
  expect([...window.lags.sorted()]).toEqual([0, 10])
  const merged = mergedWindow([window, window])
  expect(merged).toMatchObject({
    requests: 4,
    errors: 2,
    perSecond: 4,
    sendMs: 4,
    receiveMs: 8,
    durationMs: 1_000,
  })
  expect(merged.firstError).toBe(error)
})
