import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { PictureEnds } from '../../src/sources/picture-ends.js'

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

const sdp = (codec: string) => `v=0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 ${codec}/90000\r\na=control:t\r\n`

/** The last packet of a picture, with something before it. */
function packet(rtpTime: number, sequence: number): Buffer {
  const bytes = Buffer.alloc(40, 0xee)
  bytes.set([0x24, 4, 0, 32, 0x80, 0x80 | 96], 4)
  bytes.writeUInt16BE(sequence, 10)
  bytes.writeUInt32BE(rtpTime, 12)
  bytes.writeUInt32BE(0xabcdef01, 16)
  return bytes
}

function slowCamera(codec = 'H264', sampleFps = 5) {
  const sent: Buffer[] = []
  const camera = { packets: 0, isBetween: true }
  const ends = new PictureEnds({
    sampleFps,
    packets: () => camera.packets,
    send: (bytes) => {
      if (camera.isBetween) sent.push(bytes)
      return camera.isBetween
    },
  })
  ends.described(sdp(codec))
  /** A picture whose last packet comes now; `atMs` by the clock of the camera. */
  const picture = (atMs: number, sequence = camera.packets) => {
    camera.packets += 1
    ends.ended(packet((90 * atMs) % 2 ** 32, sequence), 4)
  }
  return { ends, sent, camera, picture }
}

describe('the end of a picture', () => {
  it.each([
    ['H264', [0x09, 0xf0]],
    ['H265', [0x46, 0x01, 0x50]],
  ])('R61: is told to a decoder of %s when nothing follows for half a second', (codec, delimiter) => {
    const { picture, sent } = slowCamera(codec)
    picture(1_000, 77)
    vi.advanceTimersByTime(499)
    expect(sent).toEqual([])
    vi.advanceTimersByTime(2)
    const [end] = sent
    expect([...(end?.subarray(0, 8) ?? [])]).toEqual([0x24, 4, 0, 12 + delimiter.length, 0x80, 96, 0, 77])
    expect(end?.readUInt32BE(8)).toBe(90 * 1_500)
    expect(end?.readUInt32BE(12)).toBe(0xabcdef01)
    expect([...(end?.subarray(16) ?? [])]).toEqual(delimiter)
  })

  it.each(['JPEG', 'MP4V-ES', 'VP8'])('is not told to one of %s, which needs none', (codec) => {
    const { picture, sent } = slowCamera(codec)
    picture(0)
    vi.advanceTimersByTime(60_000)
    expect(sent).toEqual([])
  })

  it('is not told of a fast camera, though a picture is late', () => {
    const { picture, sent } = slowCamera()
    for (let n = 0; n < 20; n += 1) {
      picture(40 * n)
      vi.advanceTimersByTime(40)
    }
    vi.advanceTimersByTime(30_000)
    expect(sent).toEqual([])
  })

  it('is not told while a packet of the next one has come, or a part of one', () => {
    const { picture, sent, camera, ends } = slowCamera()
    picture(0)
    camera.packets += 1
    vi.advanceTimersByTime(5_000)
    picture(2_000)
    camera.isBetween = false
    vi.advanceTimersByTime(5_000)
    expect(sent).toEqual([])
    expect(ends.timeOf(500)).toBe(500)
  })

  it('is waited for longer where pictures are sampled more rarely', () => {
    const { picture, sent } = slowCamera('H264', 0.5)
    picture(0)
    vi.advanceTimersByTime(2_400)
    expect(sent).toHaveLength(0)
    vi.advanceTimersByTime(200)
    expect(sent).toHaveLength(1)
  })

  it('R61: leaves pictures their times, also where these run over', () => {
    const { picture, ends } = slowCamera()
    const beganMs = Math.floor(2 ** 32 / 90) - 7_000
    const shown = [0, 6_000, 12_000, 18_000]
    for (const atMs of shown) {
      picture(beganMs + atMs)
      vi.advanceTimersByTime(6_000)
    }
    // As the decoder has them: that of the delimiter, for all but the first.
    expect([0, 500, 6_500, 12_500].map((ptsMs) => ends.timeOf(ptsMs))).toEqual(
      shown.map((ms) => expect.closeTo(ms, 1) as number),
    )
    expect(ends.timeOf(null)).toBeNull()
    expect(ends.timeOf(1_234)).toBe(1_234)
  })

  it('R61: is no longer told once times go back, as they do with B-frames', () => {
    const { picture, sent } = slowCamera()
    for (const atMs of [0, 6_000, 2_000, 4_000, 12_000, 8_000]) {
      picture(atMs)
      vi.advanceTimersByTime(2_000)
    }
    expect(sent).toHaveLength(2)
  })

  it('is not told after the gate was closed', () => {
    const { picture, sent, ends } = slowCamera()
    picture(0)
    ends.close()
    vi.advanceTimersByTime(5_000)
    expect(sent).toEqual([])
  })
})
