import { describe, expect, it } from 'vitest'
import {
  afterGap,
  initialDecodeState,
  longestKeyWaitMs,
  toldDecoding,
  withAllPictures,
  type DecodeState,
  type StreamFacts,
} from '../../src/sources/decode-policy.js'

const stream: StreamFacts = { codec: 'h264', by: 'software', byReason: '', restartable: true }
const auto = (sampleFps: number) => ({ decode: 'auto', sampleFps }) as const

/** The modes after each gap, in seconds, one letter each. */
function modes(
  gaps: readonly number[],
  sampleFps: number,
  facts = stream,
  decode: 'auto' | 'keyframes' = 'auto',
) {
  let state = initialDecodeState({ decode })
  const letters = gaps.map((gap) => {
    state = afterGap(state, gap * 1_000, { decode, sampleFps }, facts)
    return state.mode === 'keyframes' ? 'k' : 'f'
  })
  return { letters: letters.join(''), state }
}

const times = (count: number, ...gaps: readonly number[]) => Array.from({ length: count }, () => gaps).flat()

/** How often it was changed, which restarts a decoder each time. */
const changes = (letters: string) =>
  [...letters].filter((letter, at) => at > 0 && letter !== letters[at - 1]).length

describe('R34: the choice of what is decoded', () => {
  it.each([
    ['come exactly as often as pictures are wanted', times(8, 1), 1, 'ffkkkkkk'],
    ['come more often', times(8, 0.4), 2, 'ffkkkkkk'],
    ['come a little more rarely, by the clock of the camera', times(8, 1.01), 1, 'ffkkkkkk'],
    ['jitter around the period', times(4, 0.9, 1.1), 1, 'ffkkkkkk'],
    ['come more rarely', times(20, 2), 1, 'f'.repeat(20)],
    ['come more rarely by a tenth', times(20, 1.1), 1, 'f'.repeat(20)],
    ['come every ten seconds', times(20, 10), 5, 'f'.repeat(20)],
    ['come every ten seconds, and a picture every ten is wanted', times(8, 10), 0.1, 'ffkkkkkk'],
  ])('takes key frames alone only where it suits, when they %s', (_, gaps, fps, expected) => {
    expect(modes(gaps, fps).letters).toBe(expected)
  })

  it('does not mind a single key frame that is lost, again and again', () => {
    expect(modes([...times(8, 1), ...times(20, 2, 1, 1, 1, 1, 1)], 1).letters).toBe(`ff${'k'.repeat(126)}`)
  })

  it('goes back when they come more rarely', () => {
    expect(modes([...times(6, 1), ...times(3, 4)], 1).letters).toBe('ffkkkkkff')
    expect(modes([...times(6, 1), ...times(9, 1.15)], 1).letters.at(-1)).toBe('f')
    const { state } = modes(times(6, 1), 1)
    expect(withAllPictures(state)).toMatchObject({ mode: 'full', gapsMs: [] })
  })

  it('changes ever more rarely for a stream that changes all the time', () => {
    const restless = times(300, ...times(30, 1), ...times(5, 4))
    const { letters } = modes(restless, 1)
    expect(changes(letters)).toBeLessThanOrEqual(12)
    // The last part of what makes three hours: nothing any more.
    expect(changes(letters.slice(2_000))).toBe(0)
  })

  it('trusts a stream again whose key frames have been enough for long', () => {
    const lasted = modes([...times(203, 1), ...times(2, 4)], 1).state
    expect(lasted).toMatchObject({ mode: 'full', patience: 3 })
    expect(modes([...times(10, 1), ...times(2, 4)], 1).state).toMatchObject({ mode: 'full', patience: 6 })
  })

  it.each([
    ['each picture of which is a key frame', { ...stream, codec: 'mjpeg' }],
    ['that would begin again', { ...stream, restartable: false }],
  ])('decodes all of a stream %s', (_, facts) => {
    expect(modes(times(20, 0.1), 5, facts).letters).toBe('f'.repeat(20))
  })

  it('passes over what is no time between key frames: a step back, a jump, none', () => {
    const state = initialDecodeState({ decode: 'auto' })
    for (const gapMs of [-40, 0, Number.NaN, 86_400_000])
      expect(afterGap(state, gapMs, auto(1), stream)).toBe(state)
  })

  it('leaves alone what the settings say', () => {
    expect(modes(times(20, 8), 5, stream, 'keyframes').letters).toBe('k'.repeat(20))
    for (const decode of ['full', 'fast', 'keyframes'] as const)
      expect(initialDecodeState({ decode }).mode).toBe(decode)
  })
})

describe('what is told of it', () => {
  const state = (mode: DecodeState['mode'], ...gapsMs: readonly number[]): DecodeState => ({
    ...{ mode, gapsMs },
    ...{ enough: 0, patience: 3 },
  })

  it('is how many results come where key frames are too few', () => {
    const wanted = { decode: 'keyframes', sampleFps: 5 } as const
    expect(toldDecoding(state('keyframes', 2_000), wanted, stream)).toEqual({
      mode: 'keyframes',
      reason: 'key frames come every 2 s: 0.5 results a second instead of 5',
      keyFrameGapMs: 2_000,
      tooFew: true,
      by: 'software',
      byReason: '',
    })
    expect(toldDecoding(state('keyframes', 200), wanted, stream)).toMatchObject({ reason: '', tooFew: false })
    expect(toldDecoding(state('keyframes'), wanted, stream)).toMatchObject({
      keyFrameGapMs: null,
      tooFew: false,
    })
  })

  it.each([
    ['full', 'full', stream, ''],
    ['fast', 'fast', stream, ''],
    ['fast', 'full', { ...stream, by: 'cuda' }, 'decoders in hardware leave no loop filter out'],
    ['fast', 'full', { ...stream, codec: 'mjpeg' }, 'mjpeg is decoded without a loop filter anyway'],
    ['auto', 'full', stream, 'two key frames have not come yet'],
    ['auto', 'full', { ...stream, codec: 'mjpeg' }, 'every picture of mjpeg is a key frame'],
    ['auto', 'full', { ...stream, restartable: false }, 'a file that is shown once is not begun anew'],
  ] as const)('is, with %s, %s and why', (decode, mode, facts, reason) => {
    const told = toldDecoding(initialDecodeState({ decode }), { decode, sampleFps: 5 }, facts)
    const { by, byReason } = facts
    expect(told).toEqual({ mode, reason, keyFrameGapMs: null, tooFew: false, by, byReason })
  })

  it('names the gap and the rate that auto went by, and no other for a tenth of difference', () => {
    const first = toldDecoding(state('keyframes', 1_000, 1_000), auto(1), stream)
    expect(first.reason).toBe('key frames come every 1 s, and sampleFps is 1')
    expect(toldDecoding(state('keyframes', 1_080), auto(1), stream, first)).toEqual(first)
    expect(toldDecoding(state('keyframes', 500), auto(1), stream, first).keyFrameGapMs).toBe(500)
  })
})

it('R34: waits for a key frame longer than any camera lets it take, while packets come or key frames were seldom', () => {
  expect(longestKeyWaitMs([], true)).toBeGreaterThanOrEqual(120_000)
  expect(longestKeyWaitMs([], undefined)).toBe(60_000)
  expect(longestKeyWaitMs([2_000], undefined)).toBe(30_000)
  expect(longestKeyWaitMs([2_000, 20_000], undefined)).toBe(60_000)
  expect(longestKeyWaitMs([60_000], true)).toBe(180_000)
})
