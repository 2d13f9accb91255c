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

it('R34: waits on for as long as it is told, and by its own limit again once it was fed', () => {
  const [starved, asked] = [vi.fn(), [] as number[]]
  let furtherMs = 500
  const dog = new Watchdog(starved, (silentMs) => {
    asked.push(Math.round(silentMs))
    return furtherMs
  })
  dog.arm(1_000)
  vi.advanceTimersByTime(2_100)
  expect(asked).toEqual([1_000, 1_500, 2_000])
  dog.feed()
  furtherMs = 0
  vi.advanceTimersByTime(990)
  expect(starved).not.toHaveBeenCalled()
  vi.advanceTimersByTime(20)
  expect(starved).toHaveBeenCalledTimes(1)
})
