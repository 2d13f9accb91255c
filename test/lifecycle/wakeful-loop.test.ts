import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { WakefulLoop } from '../../src/lifecycle/wakeful-loop.js'

describe('WakefulLoop', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setImmediate'] }))
  afterEach(() => void vi.useRealTimers())

  const turns = () => {
    vi.runOnlyPendingTimers()
    return vi.getTimerCount()
  }

  it('turns from the first thing awaited to the end of the last', () => {
    const loop = new WakefulLoop(60_000)
    expect(vi.getTimerCount()).toBe(0)
    loop.begin()
    loop.begin()
    expect(turns()).toBe(1)
    loop.end()
    expect(turns()).toBe(1)
    loop.end()
    expect(turns()).toBe(0)
    loop.begin()
    expect(turns()).toBe(1)
  })

  it('lets the loop sleep once what is awaited takes longer', () => {
    const loop = new WakefulLoop(0)
    loop.begin()
    expect(turns()).toBe(0)
    loop.begin()
    expect(vi.getTimerCount()).toBe(1)
  })
})
