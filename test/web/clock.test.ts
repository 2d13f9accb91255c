import { describe, expect, it } from 'vitest'
import { PicturePace } from '../../web/src/live/picture-pace.js'
import { ServiceClock } from '../../clients/typescript/src/service-clock.js'
import { Heartbeat } from '../../clients/typescript/src/heartbeat.js'

/** A computer whose wall clock is off by so much, beside a service whose clock is right. */
function computer(offMs: number) {
  const time = { nowMs: 1_000, sleptMs: 0, offMs }
  const monotonic = (): number => time.nowMs - time.sleptMs
  const service = (): number => 1_700_000_000_000 + time.nowMs
  const clock = new ServiceClock(monotonic, () => service() + time.offMs)
  /** Asks, and gets the answer after the ways there and back. */
  const ask = (thereMs: number, backMs: number): void => {
    const askedMs = monotonic()
    time.nowMs += thereMs
    const said = service()
    time.nowMs += backMs
    clock.read(said, askedMs)
  }
  return { time, clock, ask, errorMs: () => Math.abs(clock.now() - service()) }
}

describe('the clock of the service', () => {
  it.each([0, -600_000, 600_000, 3 * 365 * 86_400_000])('R97: is right on a computer %d ms off', (offMs) => {
    const { time, ask, errorMs } = computer(offMs)
    ask(20, 20)
    expect(errorMs()).toBe(0)
    time.nowMs += 60_000
    expect(errorMs()).toBe(0)
  })

  it('R97: believes the quickest answer, not the last', () => {
    const { ask, errorMs } = computer(-600_000)
    ask(400, 10)
    expect(errorMs()).toBe(195)
    ask(5, 5)
    ask(2_000, 10)
    expect(errorMs()).toBe(0)
  })

  it('R97: goes on when this clock is set, follows when that of the service is, and after a sleep', () => {
    const { time, clock, ask, errorMs } = computer(0)
    ask(5, 5)
    time.offMs = 3_600_000
    expect(errorMs()).toBe(0)
    // The service is set forward by a minute.
    clock.read(1_700_000_000_000 + time.nowMs + 60_000, time.nowMs - 40)
    expect(errorMs()).toBeGreaterThan(59_000)
    ask(10, 10)
    expect(errorMs()).toBe(0)
    // Monotonic time stands still while some computers sleep.
    time.nowMs += 8 * 3_600_000
    time.sleptMs = 8 * 3_600_000
    ask(300, 300)
    expect(errorMs()).toBe(0)
  })

  it('is that of this computer until there is an answer, and takes no nonsense', () => {
    const { clock, errorMs } = computer(5_000)
    clock.read(Number.NaN, 0)
    expect(errorMs()).toBe(5_000)
  })
})

describe('the heartbeat', () => {
  /** Seconds from the death of a line that spoke all the time until it is given up. */
  function foundAfterS(deadAtMs: number, answers = 50): number {
    const heartbeat = new Heartbeat()
    heartbeat.begin(0)
    let answerAtMs = Number.POSITIVE_INFINITY
    for (let atMs = 0; atMs < 120_000; atMs += 50) {
      if (atMs >= answerAtMs && atMs < deadAtMs) heartbeat.heard(atMs)
      if (atMs % 1_000 !== 0) continue
      const verdict = heartbeat.tick(atMs)
      if (verdict === 'ask') answerAtMs = atMs + answers
      if (verdict === 'dead') return (atMs - deadAtMs) / 1_000
    }
    return Number.POSITIVE_INFINITY
  }

  it('R96: finds a line that died within 9 s, whenever it does', () => {
    for (let deadAtMs = 10_000; deadAtMs < 14_000; deadAtMs += 100)
      expect(foundAfterS(deadAtMs)).toBeLessThanOrEqual(9)
  })

  it('R96: leaves alone a line that is only slow', () => {
    expect(foundAfterS(Number.POSITIVE_INFINITY, 4_500)).toBe(Number.POSITIVE_INFINITY)
  })

  it('R96: gives a tab that slept the time to hear what has come', () => {
    const heartbeat = new Heartbeat()
    heartbeat.begin(0)
    expect(heartbeat.tick(1_000)).toBe('ask')
    expect(heartbeat.tick(3_600_000)).toBe('ask')
    expect(heartbeat.tick(3_601_000)).toBe('fine')
    expect(heartbeat.tick(3_602_000)).toBe('quiet')
    expect(heartbeat.tick(3_605_000)).toBe('dead')
  })

  it('R96: waits longer each time for lines that it gave up in vain', () => {
    const heartbeat = new Heartbeat()
    const patience = [1, 2, 3, 4].map(() => {
      heartbeat.begin(0)
      let atMs = 0
      while (heartbeat.tick(atMs) !== 'dead') atMs += 1_000
      return atMs
    })
    expect(patience).toEqual([5_000, 10_000, 20_000, 20_000])
  })
})

describe('the pace of pictures', () => {
  const told = { inferredFps: 5, sampleFps: 5 }
  const wall = 1_700_000_000_000
  /** Shows one picture each `stepMs`. @returns the time of the last. */
  const shown = (pace: PicturePace, stepMs: number, count: number, from = 0): number => {
    for (let i = 0; i < count; i += 1) pace.shown(wall + from + i * stepMs, from + i * stepMs)
    return from + (count - 1) * stepMs
  }
  const stale = (pace: PicturePace, atMs: number, flowing = true, more = told): number | undefined =>
    pace.staleMs(wall + atMs, atMs, flowing, more)

  it('R98: calls a picture old after 5 s, or three that did not come', () => {
    const quick = new PicturePace()
    const lastMs = shown(quick, 200, 20)
    expect([stale(quick, lastMs + 4_900), stale(quick, lastMs + 5_100)]).toEqual([undefined, 5_100])
    const slow = new PicturePace()
    const slowLastMs = shown(slow, 60_000, 4)
    const rare = { inferredFps: 1 / 60, sampleFps: 5 }
    expect(stale(slow, slowLastMs + 170_000, true, rare)).toBe(undefined)
    expect(stale(slow, slowLastMs + 181_000, true, rare)).toBe(181_000)
    // With the stream gone nothing can come, however rare pictures are.
    expect(stale(slow, slowLastMs + 6_000, false, rare)).toBe(6_000)
  })

  it('R98: does not learn from pauses of the page', () => {
    const pace = new PicturePace()
    let lastMs = shown(pace, 200, 2)
    for (let i = 0; i < 5; i += 1) {
      pace.paused()
      lastMs = shown(pace, 200, 2, lastMs + 600_000)
    }
    expect(stale(pace, lastMs + 6_000)).toBe(6_000)
  })

  it('R98: goes by how long a picture is here, where captures lie in the future', () => {
    const pace = new PicturePace()
    pace.shown(wall + 3_600_000, 1_000)
    expect(stale(pace, 8_000)).toBe(7_000)
  })
})
