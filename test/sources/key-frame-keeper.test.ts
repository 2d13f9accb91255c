import { describe, expect, it } from 'vitest'
import { KeyFrameKeeper } from '../../src/sources/key-frame-keeper.js'

const sdp = 'v=0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n'

/** A packet with its head of four bytes. */
function packet(seq: number, picture: number, nal: number, isLast: boolean): Buffer {
  const bytes = Buffer.alloc(60, picture)
  bytes.set([0x24, 0, 0, 56, 0x80, 96 | (isLast ? 0x80 : 0)])
  bytes.writeUInt16BE(seq & 0xffff, 6)
  bytes.writeUInt32BE(picture * 3_600, 8)
  bytes[16] = nal
  return bytes
}

const parametersOf = 0x67
const keyOf = 0x65
const otherOf = 0x41

class Stream {
  nowMs = 1_000_000
  readonly keeper = new KeyFrameKeeper(() => this.nowMs)
  #seq = 65_530

  constructor(description = sdp) {
    this.keeper.described(description)
  }

  send(picture: number, nals: readonly number[], lost?: number): void {
    for (const [place, nal] of nals.entries()) {
      const bytes = packet(this.#seq, picture, nal, place === nals.length - 1)
      this.#seq += 1
      if (place === lost) continue
      this.keeper.packet(bytes, 0)
      // The memory is the reader's, who goes on with it.
      bytes.fill(0)
    }
  }

  get kept(): readonly number[] | undefined {
    return this.keeper.last?.packets.map((bytes) => bytes[59] ?? 0)
  }
}

describe('the newest key frame of a stream', () => {
  it('is kept whole, with the parameter sets before it', () => {
    const stream = new Stream()
    stream.send(1, [otherOf])
    expect(stream.kept).toBeUndefined()
    stream.send(2, [parametersOf, keyOf, keyOf])
    stream.send(3, [otherOf, otherOf])
    expect(stream.kept).toEqual([2, 2, 2])
    expect(stream.keeper.last).toMatchObject({ sdp, atMs: stream.nowMs })
  })

  it('comes in pieces of any size', () => {
    const stream = new Stream()
    const bytes = packet(7, 4, keyOf, true)
    stream.keeper.packet(bytes.subarray(0, 30), 0)
    stream.keeper.received(bytes.subarray(30, 50))
    expect(stream.kept).toBeUndefined()
    stream.keeper.received(Buffer.concat([bytes.subarray(50), packet(8, 5, otherOf, true)]))
    expect(stream.keeper.last?.packets).toEqual([bytes])
  })

  it('is none that lacks a part, is not handed on, or is parameter sets alone', () => {
    const stream = new Stream()
    stream.send(1, [keyOf, keyOf, keyOf], 1)
    stream.send(2, [parametersOf])
    stream.keeper.packet(packet(1, 3, keyOf, false), 0)
    stream.keeper.leftOut()
    stream.keeper.packet(packet(2, 3, otherOf, true), 0)
    expect(stream.kept).toBeUndefined()
  })

  it('is looked for once a second where each picture is one', () => {
    const stream = new Stream()
    const copied: (readonly number[] | undefined)[] = []
    for (let picture = 1; picture <= 50; picture += 1) {
      stream.send(picture, [keyOf])
      if (copied.at(-1)?.[0] !== stream.kept?.[0]) copied.push(stream.kept)
      stream.nowMs += 40
    }
    expect(copied).toEqual([[1], [26]])
    stream.nowMs -= 3_600_000
    stream.send(51, [keyOf])
    expect(stream.kept).toEqual([51])
  })

  it('is none of several videos: nobody knows which one is shown', () => {
    const stream = new Stream(`${sdp}m=video 0 RTP/AVP 97\r\na=rtpmap:97 H264/90000\r\n`)
    stream.send(1, [keyOf])
    expect(stream.kept).toBeUndefined()
  })
})
