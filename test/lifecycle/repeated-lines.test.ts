import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { RepeatedLines, lineKind } from '../../src/lifecycle/repeated-lines.js'

describe('lineKind', () => {
  it.each([
    [
      'Application provided invalid, non monotonically increasing dts to muxer in stream 0: 4 >= -14',
      'Application provided invalid, non monotonically increasing dts to muxer in stream 0: 1745 >= 1744',
    ],
    [
      'Non-monotonous DTS in output stream 0:0; previous: 5, current: 5; changing to 6.',
      'Non-monotonous DTS in output stream 0:0; previous: 90000, current: NOPTS; changing to 90001.',
    ],
    [
      'Non-monotonic DTS; previous: 5, current: 5; changing to 6.',
      'Non-monotonic DTS; previous: 12, current: -3; changing to 13.',
    ],
    ['DTS 1.5, next:2e6 st:0 invalid dropping', 'DTS -17, next:3000000 st:0 invalid dropping'],
    [
      'Invalid timestamps stream=0, pts=1, dts=2, size=3',
      'Invalid timestamps stream=0, pts=99, dts=NOPTS, size=0',
    ],
    [
      'timestamp discontinuity (stream id=0): -90000, new offset= 12',
      'timestamp discontinuity (stream id=0): 4, new offset= -1',
    ],
    ['left block at 0x55d0c0a1 is bad', 'left block at 0xFF is bad'],
    ['RTP: PT=60: bad cseq 5b3a expected=5b39', 'RTP: PT=60: bad cseq 0001 expected=ffff'],
    ['pts_discontinuity stream time jumped by -700 ms', 'pts_discontinuity stream time jumped by 12 ms'],
  ])('is one for %j and %j', (one, other) => {
    expect(lineKind(one)).toBe(lineKind(other))
  })

  it.each([
    ['no frame!', 'no picture!'],
    ['decode_error 5 ms', 'pts_discontinuity 5 ms'],
    ['Packet corrupt (stream = 0)', 'corrupt decoded frame in stream 0'],
  ])('is another for %j and %j', (one, other) => {
    expect(lineKind(one)).not.toBe(lineKind(other))
  })
})

describe('RepeatedLines', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  function told() {
    const lines: string[] = []
    const repeated = new RepeatedLines()
    const line = (text: string) =>
      repeated.line(text, (repeats) =>
        lines.push(repeats === undefined ? text : `${text} (${repeats.times})`),
      )
    return { lines, repeated, line }
  }

  it('R58: tells the first of a kind, and then what came in each minute, for as long as it comes', () => {
    const { lines, line } = told()
    for (let second = 0; second < 600; second += 1) {
      line(`late by ${second} ms`)
      line(`late by ${second}.5 ms`)
      vi.advanceTimersByTime(1_000)
    }
    expect(lines).toHaveLength(11)
    expect(lines.slice(0, 2)).toEqual(['late by 0 ms', 'late by 59.5 ms (119)'])
    expect(lines.at(-1)).toBe('late by 599.5 ms (120)')
  })

  it('R58: forgets a kind that did not come for a minute', () => {
    const { lines, line } = told()
    line('late by 1 ms')
    line('late by 2 ms')
    vi.advanceTimersByTime(60_000)
    expect(lines).toEqual(['late by 1 ms', 'late by 2 ms (1)'])
    vi.advanceTimersByTime(60_000)
    expect(vi.getTimerCount()).toBe(0)
    line('late by 3 ms')
    expect(lines.at(-1)).toBe('late by 3 ms')
  })

  it('R58: keeps kinds apart, and no more of them than it can count', () => {
    const { lines, line } = told()
    const name = (index: number) => String.fromCharCode(103 + (index % 10), 103 + Math.floor(index / 10))
    for (let round = 0; round < 2; round += 1)
      for (let index = 0; index < 200; index += 1) line(`kind ${name(index)} of ${round}`)
    // 64 by themselves, and one for all the others.
    expect(lines).toHaveLength(65)
    expect(vi.getTimerCount()).toBe(65)
    vi.advanceTimersByTime(60_000)
    expect(lines.slice(65)).toHaveLength(65)
    expect(lines.at(-1)).toMatch(/\(271\)$/)
  })

  it('R58: tells what is left when it is closed, and keeps no timer', () => {
    const { lines, line, repeated } = told()
    line('late by 1 ms')
    line('late by 2 ms')
    repeated.close()
    repeated.close()
    expect(lines).toEqual(['late by 1 ms', 'late by 2 ms (1)'])
    expect(vi.getTimerCount()).toBe(0)
    line('late by 3 ms')
    expect(lines.at(-1)).toBe('late by 3 ms')
    expect(vi.getTimerCount()).toBe(0)
  })
})
