import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CameraAnswerError, RtspSplitter } from '../../src/sources/rtsp-splitter.js'

function packet(length: number, channel = 0): Buffer {
  const bytes = Buffer.alloc(4 + length, 0x0a)
  bytes[0] = 0x24
  bytes[1] = channel
  bytes.writeUInt16BE(length, 2)
  return bytes
}

/** What comes out, packets joined to one text and messages by their first lines and bodies. */
function split(...chunks: readonly Buffer[]) {
  const out: { packets: Buffer; messages: string[] } = { packets: Buffer.alloc(0), messages: [] }
  const splitter = new RtspSplitter({
    packets: (bytes) => (out.packets = Buffer.concat([out.packets, bytes])),
    message: ({ first, headers, body }) =>
      out.messages.push([first, ...headers.map((each) => each.join('=')), String(body)].join('|')),
  })
  for (const chunk of chunks) splitter.write(chunk)
  return out
}

const answer = Buffer.from('RTSP/1.0 200 OK\r\nCSeq: 3\r\nContent-Length: 4\r\n\r\n$\n\r\n')
const request = Buffer.from('SET_PARAMETER rtsp://c/s RTSP/1.0\nCSeq: 9\n\n')

describe('RtspSplitter', () => {
  it('tells packets from messages however they are cut', () => {
    const parts = [answer, packet(1_400), packet(8, 1), request, packet(3_000), answer]
    const whole = Buffer.concat(parts)
    const expected = split(whole)
    expect(expected.packets).toEqual(Buffer.concat([packet(1_400), packet(8, 1), packet(3_000)]))
    expect(expected.messages).toEqual([
      'RTSP/1.0 200 OK|CSeq=3|Content-Length=4|$\n\r\n',
      'SET_PARAMETER rtsp://c/s RTSP/1.0|CSeq=9|',
      'RTSP/1.0 200 OK|CSeq=3|Content-Length=4|$\n\r\n',
    ])
    fc.assert(
      fc.property(fc.array(fc.nat(whole.length), { maxLength: 30 }), (cuts) => {
        const places = [0, ...cuts.sort((a, b) => a - b), whole.length]
        const chunks = places.slice(1).map((end, index) => whole.subarray(places[index], end))
        const { packets, messages } = split(...chunks)
        expect([packets.equals(expected.packets), messages]).toEqual([true, expected.messages])
      }),
      { numRuns: 200 },
    )
  })

  it('hands a chunk of packets on as it came', () => {
    const chunk = Buffer.concat([packet(100), packet(100)])
    const passed: Buffer[] = []
    new RtspSplitter({ packets: (bytes) => passed.push(bytes), message: () => undefined }).write(chunk)
    expect(passed).toHaveLength(1)
    expect(passed[0]).toBe(chunk)
  })

  it('R34: counts packets of pictures, not reports, however they are cut', () => {
    const media = packet(1_400)
    media[5] = 0xe0
    const report = packet(28, 1)
    report[5] = 200
    const whole = Buffer.concat([media, report, answer, media, report, media])
    for (const step of [whole.length, 1_000]) {
      const splitter = new RtspSplitter({ packets: () => undefined, message: () => undefined })
      for (let at = 0; at < whole.length; at += step) splitter.write(whole.subarray(at, at + step))
      expect(splitter.mediaPackets).toBe(3)
    }
  })

  it('S3: leaves out packets so short that ffmpeg takes their bytes for text', () => {
    const short = Buffer.from('$\0\0\x07RTSP/1.')
    expect(split(short, packet(20), short).packets).toEqual(packet(20))
  })

  it('leaves out lines that are neither, and goes on behind them', () => {
    const { packets, messages } = split(Buffer.from('\r\nHTTP/1.0 404\r\n\x00\x01\n'), packet(20), answer)
    expect(packets).toEqual(packet(20))
    expect(messages).toHaveLength(1)
  })

  it.each([
    ['head', `RTSP/1.0 200 OK\r\n${'x: y\r\n'.repeat(20_000)}`],
    ['line', 'x'.repeat(70_000)],
    ['body', 'RTSP/1.0 200 OK\r\nContent-Length: 9999999\r\n\r\n'],
  ])('gives up on a %s without end', (_, text) => {
    expect(() => split(Buffer.from(text))).toThrow(CameraAnswerError)
  })
})
