import { describe, expect, it } from 'vitest'
import { UsualTime } from '../../src/runtime/usual-time.js'

function after(times: readonly number[]): UsualTime {
  const usual = new UsualTime()
  for (const ms of times) usual.add(ms)
  return usual
}

const runs = (ms: number, count: number) => Array.from({ length: count }, () => ms)

describe('R44: UsualTime', () => {
  it('is the median of the last runs, once there were some', () => {
    expect(after(runs(7, 7)).medianMs).toBe(Infinity)
    expect(after([9, 1, 8, 2, 7, 3, 6, 4]).medianMs).toBe(4)
    expect(after([...runs(7, 20), ...runs(900, 12)]).medianMs).toBe(7)
  })

  it('calls slow what takes ten times that', () => {
    const usual = after(runs(7, 8))
    expect([60, 70, 71, 1_100].map((ms) => usual.add(ms))).toEqual([false, false, true, true])
  })

  it('calls nothing slow of the first runs, and nothing that is over in less than 5 ms', () => {
    expect(after(runs(1, 7)).add(1_000)).toBe(false)
    expect(after(runs(0.01, 8)).add(4.9)).toBe(false)
    expect(after(runs(0.01, 8)).add(5)).toBe(true)
  })

  it('takes what stays so for usual', () => {
    const usual = after(runs(7, 31))
    const slow = runs(100, 40).filter((ms) => usual.add(ms)).length
    expect(slow).toBeGreaterThanOrEqual(16)
    expect(slow).toBeLessThanOrEqual(24)
    expect(usual.medianMs).toBe(100)
  })
})
