import { describe, expect, it } from 'vitest'
import {
  FrameError,
  frameHeadBytes,
  FrameSplitter,
  mostBodyBytes,
  writeFrameHead,
} from '../../src/processes/frames.js'

function frame(kind: number, body: Uint8Array): Buffer {
  const head = Buffer.alloc(frameHeadBytes)
  writeFrameHead(head, kind, body.length)
  return Buffer.concat([head, body])
}

/** Bodies of every length around a border, each of other bytes. */
const bodies = [0, 1, 4, 5, 6, 300, 70_000, 3].map((bytes, index) => Buffer.alloc(bytes, index + 1))
const stream = Buffer.concat(bodies.map((body, index) => frame(index % 2, body)))

function readInPieces(pieces: (left: number) => number) {
  const read: [number, Buffer][] = []
  const reader = new FrameSplitter((kind, body) => read.push([kind, body]))
  for (let at = 0, size = 0; at < stream.length; at += size) {
    size = Math.max(1, pieces(stream.length - at))
    reader.read(stream.subarray(at, at + size))
  }
  return { read, reader }
}

describe('FrameSplitter', () => {
  it.each([
    ['whole', (left: number) => left],
    ['byte by byte', () => 1],
    ['in sevens', () => 7],
    ['in pieces of any size', () => Math.floor(Math.random() * 200)],
    ['in large pieces', () => 65_536],
  ])('gives every frame as it was, of bytes that come %s', (_, pieces) => {
    const { read, reader } = readInPieces(pieces)
    expect(read.map(([kind]) => kind)).toEqual(bodies.map((_, index) => index % 2))
    expect(
      read.map(([, body]) => Buffer.compare(body, bodies[read.findIndex(([, b]) => b === body)]!)),
    ).toEqual(bodies.map(() => 0))
    expect(reader.isTorn).toBe(false)
  })

  it('gives what is whole of torn bytes, and knows that they are torn', () => {
    const read: Buffer[] = []
    const reader = new FrameSplitter((_, body) => read.push(body))
    reader.read(stream.subarray(0, stream.length - 1))
    expect(read).toHaveLength(bodies.length - 1)
    expect(reader.isTorn).toBe(true)
  })

  it('refuses a frame that is too large before it has come, and none that is as large as may be', () => {
    const head = Buffer.alloc(frameHeadBytes)
    head.writeUInt32LE(mostBodyBytes + 1)
    expect(() => new FrameSplitter(() => undefined).read(head)).toThrow(FrameError)
    head.writeUInt32LE(mostBodyBytes)
    expect(() => new FrameSplitter(() => undefined).read(head)).not.toThrow()
    expect(() => writeFrameHead(head, 0, mostBodyBytes + 1)).toThrow(FrameError)
  })
})
