import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { GrowingTries } from '../../src/lifecycle/growing-tries.js'

describe('R45: GrowingTries', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  function tries(attempt: () => Promise<void> = () => Promise.resolve()) {
    const state = { needed: true, atMs: [] as number[] }
    const begunMs = Date.now()
    const these = new GrowingTries({
      firstMs: 1_000,
      isNeeded: () => state.needed,
      attempt: () => {
        state.atMs.push(Date.now() - begunMs)
        return attempt()
      },
    })
    these.look()
    return { these, state }
  }

  it('wait twice as long each time, up to thirty times the first', async () => {
    const { state } = tries()
    await vi.advanceTimersByTimeAsync(100_000)
    expect(state.atMs).toEqual([1_000, 3_000, 7_000, 15_000, 31_000, 61_000, 91_000])
  })

  it('begin anew once nothing was needed for a while', async () => {
    const { these, state } = tries()
    await vi.advanceTimersByTimeAsync(3_500)
    state.needed = false
    await vi.advanceTimersByTimeAsync(20_000)
    these.look()
    state.needed = true
    these.look()
    await vi.advanceTimersByTimeAsync(1_000)
    expect(state.atMs).toEqual([1_000, 3_000, 24_500])
  })

  it('are one at a time, however often they are looked at', async () => {
    let end: () => void = () => undefined
    const { these, state } = tries(() => new Promise((resolve) => (end = resolve)))
    for (let look = 0; look < 10; look += 1) {
      await vi.advanceTimersByTimeAsync(1_000)
      these.look()
    }
    expect(state.atMs).toEqual([1_000])
    end()
    await vi.advanceTimersByTimeAsync(2_000)
    expect(state.atMs).toEqual([1_000, 12_000])
  })

  it('end', async () => {
    const { these, state } = tries()
    these.stop()
    these.look()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(state.atMs).toEqual([])
  })
})
