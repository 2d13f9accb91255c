import { describe, expect, it } from 'vitest'
import { QuantileWindow, RateWindow } from '../../src/cameras/windows.js'

describe('RateWindow', () => {
  it('counts whole seconds and leaves the running one out', () => {
    const rate = new RateWindow(10)
    for (let second = 0; second < 10; second += 1) rate.add(second * 1_000 + 10, 5)
    expect(rate.perSecond(10_500)).toBe(5)
    rate.add(10_500, 100)
    expect(rate.perSecond(10_900)).toBe(5)
  })

  it('falls to zero when nothing comes, also after a pause longer than the window', () => {
    const rate = new RateWindow(10)
    rate.add(1_000, 50)
    expect(rate.perSecond(2_000)).toBe(5)
    expect(rate.perSecond(60_000)).toBe(0)
  })
})

describe('QuantileWindow', () => {
  it('knows nothing while empty', () => {
    expect(new QuantileWindow(4).quantiles(0.5)).toBeUndefined()
  })

  it('keeps the newest values only', () => {
    const window = new QuantileWindow(4)
    for (const value of [100, 1, 2, 3, 4]) window.add(value)
    expect(window.quantiles(0, 0.5, 0.99)).toEqual([1, 3, 4])
  })
})
