import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { headroomOf, type ServiceLoad, waitedServices } from '../../src/cameras/headroom.js'

const load: ServiceLoad = {
  cameras: 4,
  comingCameras: 0,
  cores: { all: 4, busy: 1 },
  cpuMsPerFrame: 30,
  instances: { all: 4, busy: 0.6 },
  runMs: 30,
  p99Ms: 80,
}
const kind = { framesPerSecond: 5, decoderCores: 0.1 }

describe('headroom', () => {
  it('ends where the cores end', () => {
    // 0.25 cores each, 2.88 are left.
    expect(headroomOf(load, kind, 1_000)).toMatchObject({ cameras: 11, limitedBy: 'cpu' })
    expect(headroomOf(load, kind, 1_000).predicted.busyCores).toBeCloseTo(3.75)
  })

  it('ends where the instances end, which need no core on a GPU', () => {
    const onGpu = { ...load, cpuMsPerFrame: 1, instances: { all: 1, busy: 0.6 } }
    // 0.15 of an instance each, 0.37 is left.
    expect(headroomOf(onGpu, kind, 1_000)).toMatchObject({ cameras: 2, limitedBy: 'instances' })
  })

  it('ends where results would be later than wanted', () => {
    const { cameras, limitedBy, predicted } = headroomOf(load, kind, 90)
    expect({ limitedBy, fewer: cameras < 11 }).toEqual({ limitedBy: 'latency', fewer: true })
    expect(predicted.p99Ms).toBeLessThanOrEqual(90)
    expect(headroomOf({ ...load, p99Ms: 91 }, kind, 90)).toMatchObject({ cameras: 0, limitedBy: 'latency' })
  })

  it('counts cameras that are on their way', () => {
    expect(headroomOf({ ...load, comingCameras: 3 }, kind, 1_000).cameras).toBe(8)
    expect(headroomOf({ ...load, comingCameras: 30 }, kind, 1_000).cameras).toBe(0)
  })

  it('is less for cameras that ask for more, and never less for a longer objective', () => {
    const number = (min: number, max: number) => fc.double({ min, max, noNaN: true })
    const loads = fc.record({
      cameras: fc.integer({ min: 0, max: 200 }),
      comingCameras: fc.integer({ min: 0, max: 20 }),
      cores: fc.record({ all: fc.integer({ min: 1, max: 64 }), busy: number(0, 64) }),
      cpuMsPerFrame: number(0, 200),
      instances: fc.record({ all: fc.integer({ min: 1, max: 16 }), busy: number(0, 16) }),
      runMs: number(0, 200),
      p99Ms: number(0, 2_000),
    })
    const kinds = fc.record({ framesPerSecond: number(0, 60), decoderCores: number(0, 2) })
    fc.assert(
      fc.property(loads, kinds, number(1, 2_000), (of, small, objectiveMs) => {
        const large = { framesPerSecond: small.framesPerSecond * 2, decoderCores: small.decoderCores * 2 }
        const { cameras, predicted } = headroomOf(of, small, objectiveMs)
        expect(headroomOf(of, large, objectiveMs).cameras).toBeLessThanOrEqual(cameras)
        expect(headroomOf(of, small, objectiveMs * 2).cameras).toBeGreaterThanOrEqual(cameras)
        if (cameras > 0) expect(predicted.p99Ms).toBeLessThanOrEqual(objectiveMs)
      }),
    )
  })
})

/** Waits of periodic sources with phases by chance before one server, by trying. */
function simulatedWait(sources: number, load: number, random: () => number): number {
  const period = sources / load
  const waits: number[] = []
  for (let trial = 0; trial < 400; trial += 1) {
    const phases = Array.from({ length: sources }, () => random() * period).sort((a, b) => a - b)
    let freeAt = 0
    // The second round begins with what the first one left.
    for (const round of [0, 1])
      for (const phase of phases) {
        const at = phase + round * period
        const begins = Math.max(at, freeAt)
        freeAt = begins + 1
        if (round === 1) waits.push(begins - at)
      }
  }
  waits.sort((a, b) => a - b)
  return waits[Math.floor(0.99 * waits.length)] ?? 0
}

describe('waits of periodic sources', () => {
  it.each([
    [4, 0.7],
    [10, 0.8],
    [10, 0.95],
    [50, 0.9],
    [100, 0.97],
  ])('are about those of %i sources at a load of %f, tried', (sources, load) => {
    let state = 42
    const random = () => (state = (state * 1_103_515_245 + 12_345) % 2 ** 31) / 2 ** 31
    const tried = simulatedWait(sources, load, random)
    expect(Math.abs(waitedServices(sources, load) - tried)).toBeLessThan(Math.max(1, 0.25 * tried))
  })

  it('are none where nothing comes', () => {
    expect(waitedServices(0, 0.5)).toBe(0)
  })
})
