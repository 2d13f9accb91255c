import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Watchdog } from '../../src/sources/watchdog.js'

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

it('calls back once when it was not fed for its limit, and never before', () => {
  const starved = vi.fn()
  const dog = new Watchdog(starved)
  dog.arm(1_000)
  vi.advanceTimersByTime(900)
  dog.feed()
  vi.advanceTimersByTime(990)
  expect(starved).not.toHaveBeenCalled()
  vi.advanceTimersByTime(20)
  expect(starved).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(5_000)
  expect(starved).toHaveBeenCalledTimes(1)
})

it('R34: waits on while it is excused, and by its own limit again once it was fed', () => {
  const [starved, asked] = [vi.fn(), [] as number[]]
  let excused = true
  const dog = new Watchdog(starved, (silentMs) => {
    asked.push(Math.round(silentMs))
    return excused
  })
  dog.arm(1_000)
  vi.advanceTimersByTime(3_500)
  expect(asked).toEqual([1_000, 2_000, 3_000])
  dog.feed()
  excused = false
  vi.advanceTimersByTime(990)
  expect(starved).not.toHaveBeenCalled()
  vi.advanceTimersByTime(20)
  expect(starved).toHaveBeenCalledTimes(1)
})
