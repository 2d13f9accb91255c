import { describe, expect, it } from 'vitest'
import { ResumeRing } from '../../../src/delivery/websocket/resume-ring.js'

function positions(ring: ResumeRing): readonly number[] {
  const found: number[] = []
  for (let kept = ring.next(0); kept !== undefined; kept = ring.next(kept.position + 1))
    found.push(kept.position)
  return found
}

function filled(maxMessages: number, maxBytes: number, bytes: readonly number[]): ResumeRing {
  const ring = new ResumeRing(maxMessages, maxBytes)
  for (const size of bytes) ring.push('dock-1', Buffer.alloc(size, 'x'))
  return ring
}

describe('ResumeRing', () => {
  it.each([
    ['keeps everything while there is room', filled(4, 9_000, [1, 1, 1]), [1, 2, 3], 3 * 256],
    ['drops the oldest beyond its count', filled(3, 9_000, [1, 2, 3, 4, 5]), [3, 4, 5], 3 * 256],
    ['drops the oldest beyond its bytes', filled(9, 1_024, [512, 500, 400]), [2, 3], 1_024],
    ['keeps the newest however large it is', filled(9, 1_024, [4, 5_000]), [2], 5_120],
    ['is empty at first', filled(4, 9_000, []), [], 0],
  ])('%s', (_, ring, kept, bytes) => {
    expect(positions(ring)).toEqual(kept)
    expect(ring.oldest).toBe(kept[0] ?? 1)
    expect(ring.bytes).toBe(bytes)
  })

  it('gives each text back as it came, whatever stood in its memory before', () => {
    const ring = new ResumeRing(3, 100_000)
    const sizes = [4_000, 10, 900, 5, 4_100, 70, 0]
    sizes.forEach((size, index) => ring.push('dock-1', Buffer.from(`${index} ø${'x'.repeat(size)}`)))
    const kept = [5, 6, 7].map((position) => ring.next(position)?.json.toString())
    expect(kept).toEqual([4, 5, 6].map((index) => `${index} ø${'x'.repeat(sizes[index] ?? 0)}`))
  })

  it('takes messages at their places, between which there is nothing', () => {
    const ring = new ResumeRing(3, 9_000)
    ring.begin(40)
    expect([ring.oldest, ring.newest]).toEqual([41, 40])
    for (const position of [45, 46, 50, 61]) ring.push('dock-1', Buffer.from('x'), position)
    ring.begin(90)
    expect(positions(ring)).toEqual([46, 50, 61])
    expect([ring.oldest, ring.newest]).toEqual([46, 61])
    expect([47, 50, 51, 62].map((position) => ring.next(position)?.position)).toEqual([50, 50, 61, undefined])
  })

  it('goes on behind messages that never came, without what was before them', () => {
    const ring = filled(4, 9_000, [1, 1, 1])
    ring.skip(5)
    expect([ring.oldest, ring.newest, ring.bytes]).toEqual([9, 8, 0])
    expect(ring.push('dock-1', Buffer.from('x'))).toBe(9)
    expect(positions(ring)).toEqual([9])
  })

  it('goes on behind a position up to which there was nothing, and keeps what it has', () => {
    const ring = new ResumeRing(10, 1_000)
    ring.advance(500)
    expect([ring.oldest, ring.newest, ring.next(1)]).toEqual([501, 500, undefined])
    expect(ring.push('dock-1', Buffer.from('a'))).toBe(501)
    ring.advance(900)
    ring.advance(700)
    expect([ring.oldest, ring.newest]).toEqual([501, 900])
    expect(ring.push('dock-1', Buffer.from('b'))).toBe(901)
    expect([ring.next(501)?.position, ring.next(502)?.position]).toEqual([501, 901])
  })
})
