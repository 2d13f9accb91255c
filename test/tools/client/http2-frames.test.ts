import { expect, it } from 'vitest'
import { frameOf, Http2FrameReader, type FrameSink } from '../../../src/tools/client/http2-frames.js'

function sink() {
  const seen: unknown[] = []
  let text = ''
  let flow = 0
  const taker: FrameSink = {
    data: (stream, bytes, flowBytes, isEnd) => {
      text += bytes.toString()
      flow += flowBytes
      if (isEnd) seen.push({ stream, text, flow })
    },
    frame: (type, flags, stream, payload) => seen.push({ type, flags, stream, payload: payload.toString() }),
  }
  return { seen, reader: new Http2FrameReader(taker) }
}

const bytes = Buffer.concat([
  frameOf(4, 0, 0, Buffer.alloc(0)),
  frameOf(1, 4, 7, Buffer.from('head')),
  frameOf(0, 0, 7, Buffer.from('one ')),
  frameOf(0, 0, 7, Buffer.alloc(0)),
  frameOf(0, 8, 7, Buffer.from('\x03two 000')),
  frameOf(0, 0, 7, Buffer.from('three')),
  frameOf(0, 1, 7, Buffer.alloc(0)),
  frameOf(99, 0xff, 2 ** 31 - 1, Buffer.from('?')),
])
const frames = [
  { type: 4, flags: 0, stream: 0, payload: '' },
  { type: 1, flags: 4, stream: 7, payload: 'head' },
  { stream: 7, text: 'one two three', flow: 17 },
  { type: 99, flags: 0xff, stream: 2 ** 31 - 1, payload: '?' },
]

it.each([1, 2, 5, 9, 10, 23, bytes.length])('makes frames of what comes %i bytes at a time', (size) => {
  const { seen, reader } = sink()
  for (let at = 0; at < bytes.length; at += size) reader.read(bytes.subarray(at, at + size))
  expect(seen).toEqual(frames)
})

it.each<[string, ...Buffer[]]>([
  ['longer than it may be', Buffer.from('ffffff0100', 'hex'), Buffer.alloc(4)],
  ['filled with more than it has', frameOf(0, 8, 1, Buffer.from('\x05abcd'))],
  ['filled with nothing', frameOf(0, 8, 1, Buffer.alloc(0))],
])('refuses a frame that is %s', (_, ...chunks) => {
  const { reader } = sink()
  expect(() => reader.read(Buffer.concat(chunks))).toThrow(
    expect.objectContaining({ name: 'Http2SyntaxError' }),
  )
})
