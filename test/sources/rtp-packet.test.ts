import { describe, expect, it } from 'vitest'
import { beginsKeyFrame, RtpClock, videoTypes, type RtpVideo } from '../../src/sources/rtp-packet.js'

describe('a packet that a decoder may begin with', () => {
  const of = (payload: readonly number[], head: readonly number[] = []) =>
    Buffer.from([
      0xee,
      0x24,
      0,
      0,
      0,
      0x80 | (head.length > 0 ? 16 : 0),
      96,
      0,
      1,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      ...head,
      ...payload,
    ])

  it.each([
    ['parameter sets', 'H264', [0x67, 0x64], true],
    ['a key frame', 'H264', [0x65, 0x88], true],
    ['the first piece of one', 'H264', [0x7c, 0x85], true],
    ['a later piece of one', 'H264', [0x7c, 0x05], false],
    ['several, parameter sets first', 'H264', [0x78, 0, 20, 0x67], true],
    ['several, others first', 'H264', [0x78, 0, 20, 0x41], false],
    ['another picture', 'H264', [0x41, 0x9a], false],
    ['the first piece of another picture', 'H264', [0x5c, 0x81], false],
    ['a delimiter', 'H264', [0x09, 0xf0], false],
    ['parameter sets', 'H265', [0x40, 0x01], true],
    ['a key frame', 'H265', [0x26, 0x01], true],
    ['one that others are left out behind', 'H265', [0x2a, 0x01], true],
    ['the first piece of one', 'H265', [0x62, 0x01, 0x93], true],
    ['a later piece of one', 'H265', [0x62, 0x01, 0x13], false],
    ['several, parameter sets first', 'H265', [0x60, 0x01, 0, 24, 0x40, 0x01], true],
    ['another picture', 'H265', [0x02, 0x01], false],
    ['the beginning of a picture', 'JPEG', [0, 0, 0, 0, 1, 255], true],
    ['the rest of a picture', 'JPEG', [0, 0, 4, 176, 1, 255], false],
  ] as const)('%s of %s', (_, video, payload, expected) => {
    expect(beginsKeyFrame(of(payload), 1, video)).toBe(expected)
    expect(beginsKeyFrame(of(payload, [0xab, 0xac, 0, 1, 9, 9, 9, 9]), 1, video)).toBe(expected)
  })

  it('is none where its bytes have not come', () => {
    for (const video of ['H264', 'H265', 'JPEG'] satisfies RtpVideo[])
      for (const head of [[], [0xab, 0xac, 0xff, 0xff]])
        expect(beginsKeyFrame(of([], head), 1, video)).toBe(false)
  })
})

it('what a description says of the streams', () => {
  const sdp =
    'm=video 0 RTP/AVP 96\r\na=rtpmap:96 h264/90000\r\na=rtpmap:97 HEVC/90000\r\na=rtpmap:98 VP8/90000\r\n'
  expect([...videoTypes(sdp)]).toEqual([
    [96, 'H264'],
    [97, 'H265'],
  ])
  expect([...videoTypes('m=video 0 RTP/AVP 26\r\n')]).toEqual([[26, 'JPEG']])
  expect([...videoTypes('m=audio 0 RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n')]).toEqual([])
})

it('time goes on where its 32 bits run over, back and forth', () => {
  const clock = new RtpClock()
  const times = [2 ** 32 - 100, 50, 2 ** 32 - 50, 200]
  const ticks = times.map((time) => clock.ticks(time))
  expect(ticks.map((tick) => tick - (ticks[0] ?? 0))).toEqual([0, 150, 50, 300])
})
