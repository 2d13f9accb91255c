import { describe, expect, it } from 'vitest'
import { firstFree, phaseOf } from '../../../src/processes/engine/sampling-places.js'

describe('phaseOf', () => {
  it.each([1, 2, 3, 6, 16, 33])('keeps %d cameras apart by at least half of an even share', (cameras) => {
    const phases = Array.from({ length: cameras }, (_, place) => phaseOf(place)).sort((a, b) => a - b)
    const gaps = phases.map((phase, index) => (phases[index + 1] ?? 1 + phases[0]!) - phase)
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(0.5 / cameras)
    for (const phase of phases) expect(phase).toBeLessThan(1)
  })

  it('begins with the halves, then the quarters', () => {
    expect([0, 1, 2, 3, 4].map(phaseOf)).toEqual([0, 0.5, 0.25, 0.75, 0.125])
  })
})

describe('firstFree', () => {
  it('gives the place of a camera that left to the next that comes', () => {
    expect(firstFree([])).toBe(0)
    expect(firstFree([0, 1, 3])).toBe(2)
    expect(firstFree([2, 0, 1])).toBe(3)
  })
})
