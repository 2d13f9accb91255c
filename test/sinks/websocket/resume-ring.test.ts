import { describe, expect, it } from 'vitest'
import { ResumeRing } from '../../../src/sinks/websocket/resume-ring.js'

const positions = (ring: ResumeRing) =>
  Array.from({ length: ring.newest + 2 }, (_, at) => ring.at(at)?.position).filter((at) => at !== undefined)

function filled(maxMessages: number, maxBytes: number, bytes: readonly number[]): ResumeRing {
  const ring = new ResumeRing(maxMessages, maxBytes)
  for (const size of bytes) ring.push('dock-1', () => Buffer.alloc(size))
  return ring
}

describe('ResumeRing', () => {
  it.each([
    ['keeps everything while there is room', filled(4, 100, [1, 1, 1]), [1, 2, 3], 3],
    ['drops the oldest beyond its count', filled(3, 100, [1, 2, 3, 4, 5]), [3, 4, 5], 12],
    ['drops the oldest beyond its bytes', filled(9, 10, [4, 4, 4]), [2, 3], 8],
    ['keeps the newest however large it is', filled(9, 10, [4, 50]), [2], 50],
    ['is empty at first', filled(4, 100, []), [], 0],
  ])('%s', (_, ring, kept, bytes) => {
    expect(positions(ring)).toEqual(kept)
    expect(ring.oldest).toBe(kept[0] ?? 1)
    expect(ring.bytes).toBe(bytes)
  })
})
