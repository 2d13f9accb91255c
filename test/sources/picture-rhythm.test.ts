import { describe, expect, it } from 'vitest'
import { PictureRhythm } from '../../src/sources/picture-rhythm.js'
import type { SignsOfLife } from '../../src/sources/session.js'

const alive: SignsOfLife = { life: 'alive', pictures: 0 }
const gone: SignsOfLife = { life: 'gone' }

/** A camera whose pictures come after the given times in ms, one after the other. */
function seen(everyMs: readonly number[], sampleFps = 5, stallTimeoutMs?: number) {
  const rhythm = new PictureRhythm({ sampleFps, stallTimeoutMs })
  let atMs = 0
  const go = (gapsMs: readonly number[]) => {
    for (const gapMs of gapsMs) rhythm.picture((atMs += gapMs), atMs)
  }
  rhythm.begins()
  go([0, ...everyMs])
  return { rhythm, go, silenceMs: (signs?: SignsOfLife) => rhythm.silenceMs(atMs, signs), nowMs: () => atMs }
}

const times = (count: number, everyMs: number) => new Array<number>(count).fill(everyMs)

describe('the silence that is borne', () => {
  it.each([
    ['25 a second, of which 5 are sampled', times(20, 200), 5_200],
    ['60 a second', times(20, 17), 5_200],
    ['one a second', times(20, 1_000), 5_200],
    ['one in 3 s', times(20, 3_000), 7_200],
    ['one in 6 s', times(20, 6_000), 14_700],
    ['one a minute', times(4, 60_000), 149_700],
    ['one in ten minutes', times(4, 600_000), 900_200],
    ['some that come late at times', [...times(20, 200), 4_000, ...times(20, 200)], 5_200],
  ])('R61: of a camera of %s', (_, gapsMs, expectedMs) => {
    expect(Math.round(seen(gapsMs).silenceMs())).toBe(expectedMs)
  })

  it('R61: is two minutes and a half before the times between pictures are known', () => {
    expect(seen([]).silenceMs()).toBe(150_200)
    expect(seen([200, 200]).silenceMs()).toBe(150_200)
    expect(seen([200, 200, 200]).silenceMs()).toBe(5_200)
  })

  it('R61: is what the settings say, whatever the camera does', () => {
    for (const gapsMs of [[], times(20, 200), times(20, 60_000)])
      expect(seen(gapsMs, 5, 2_000).silenceMs()).toBe(2_200)
    expect(seen(times(20, 200), 5, 2_000).silenceMs({ ...alive, quiet: { forMs: 90_000, endedMs: 1 } })).toBe(
      2_200,
    )
  })

  it('has the time between two samples in it', () => {
    expect(seen(times(20, 100_000), 0.01).silenceMs()).toBe(105_000)
  })

  it('R61: follows a camera that sends less at night, and more by day', () => {
    const camera = seen(times(100, 200))
    camera.go(times(5, 4_000))
    expect(Math.round(camera.silenceMs())).toBe(9_700)
    camera.go(times(5, 200))
    expect(camera.silenceMs()).toBe(5_200)
  })

  it('R61: is longer for a camera that was quiet in a session that lived, for five times as long', () => {
    const camera = seen(times(20, 200))
    const quiet = { ...alive, quiet: { forMs: 120_000, endedMs: camera.nowMs() } }
    expect(camera.silenceMs(quiet)).toBe(300_200)
    camera.go(times(590, 1_000))
    expect(camera.silenceMs(quiet)).toBe(300_200)
    camera.go(times(20, 1_000))
    expect(camera.silenceMs()).toBe(5_200)
  })

  it('R61: is no longer than usual where the camera has stopped answering', () => {
    expect(seen(times(20, 60_000)).silenceMs(gone)).toBe(5_200)
  })

  it('R61: goes by the clock of the camera where pictures come in a burst', () => {
    const rhythm = new PictureRhythm({ sampleFps: 5 })
    rhythm.begins()
    for (let n = 0; n < 6; n += 1) rhythm.picture(n, n * 60_000)
    expect(Math.round(rhythm.silenceMs(6, alive))).toBe(149_700)
  })

  it('R61: doubles each time that a camera falls silent soon after it was opened anew, until it goes on', () => {
    const rhythm = new PictureRhythm({ sampleFps: 5 })
    let atMs = 0
    const session = (signs: SignsOfLife) => {
      rhythm.begins()
      for (const _ of times(10, 200)) rhythm.picture((atMs += 200), atMs)
      const silentMs = rhythm.silenceMs(atMs, signs)
      atMs += silentMs
      rhythm.stalled(silentMs, signs)
      return silentMs
    }
    expect([session(alive), session(alive), session(alive)]).toEqual([5_200, 10_600, 21_400])
    rhythm.begins()
    for (const _ of times(400, 200)) rhythm.picture((atMs += 200), atMs)
    expect(rhythm.silenceMs(atMs, alive)).toBe(5_200)
  })

  it('does not double for a camera that dies after a while, or that is gone', () => {
    const { rhythm, go, silenceMs } = seen(times(100, 200))
    rhythm.stalled(5_200, alive)
    expect(silenceMs()).toBe(5_200)
    rhythm.begins()
    go(times(5, 200))
    rhythm.stalled(5_200, gone)
    expect(silenceMs()).toBe(5_200)
  })
})

describe('the wait for a first picture', () => {
  const fast = () => seen(times(20, 200)).rhythm

  it.each([
    ['is 30 s where the camera has not said that it sends', undefined, false, undefined, 30_000],
    ['is as long as a silence where nothing is known of it', undefined, true, undefined, 150_000],
    ['is five minutes where the camera answers', undefined, true, alive, 300_000],
    ['is 30 s where it no longer does', undefined, true, gone, 30_000],
    ['is twenty minutes while pictures come rarely', undefined, true, { ...alive, pictures: 3 }, 1_200_000],
    [
      'is 30 s where many have come that none could be made of',
      undefined,
      true,
      { ...alive, pictures: 750 },
      30_000,
    ],
    ['is 30 s at least where the settings say less', 5_000, true, alive, 30_000],
    ['is twice what the settings say', 60_000, true, alive, 120_000],
  ] as const)('R61: %s', (_, stallTimeoutMs, isOpen, signs, expectedMs) => {
    const rhythm = new PictureRhythm({ sampleFps: 5, stallTimeoutMs })
    expect(rhythm.firstPictureMs(0, isOpen, signs)).toBe(expectedMs)
  })

  it('R61: is 30 s for a camera that is known to be fast, and then longer each time', () => {
    const rhythm = fast()
    const waits = [1, 2, 3].map(() => {
      rhythm.begins()
      const waitMs = rhythm.firstPictureMs(0, true, alive)
      rhythm.stalled(waitMs, alive)
      return waitMs
    })
    expect(waits).toEqual([30_000, 60_000, 120_000])
  })
})
