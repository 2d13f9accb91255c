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

  it.each([4_000, 6_000, 60_000])('R61: is even of events that come every %i ms', (everyMs) => {
    const rate = new RateWindow(10)
    for (let n = 0; n < 8; n += 1) rate.add(n * everyMs)
    for (const share of [0, 0.5, 1, 2])
      expect(rate.perSecond((7 + share) * everyMs)).toBeCloseTo(1_000 / everyMs, 6)
    expect(rate.perSecond(11 * everyMs)).toBe(0)
  })

  it('follows events that become rare, and that become frequent again', () => {
    const rate = new RateWindow(10)
    for (let n = 0; n < 100; n += 1) rate.add(n * 200)
    for (const atMs of [60_000, 120_000, 180_000, 240_000, 300_000]) rate.add(atMs)
    expect(rate.perSecond(301_000)).toBeCloseTo(1 / 60, 6)
    for (let n = 0; n < 60; n += 1) rate.add(301_000 + n * 200)
    expect(rate.perSecond(313_000)).toBeCloseTo(5, 0)
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
