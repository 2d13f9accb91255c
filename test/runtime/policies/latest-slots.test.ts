import { describe, expect, it } from 'vitest'
import { LatestSlots } from '../../../src/runtime/policies/latest-slots.js'

const item = (streamId: string, enqueuedMs: number) => ({ streamId, enqueuedMs })

describe('LatestSlots', () => {
  it('keeps the newest item of a stream and gives the older one back', () => {
    const slots = new LatestSlots()
    const first = item('a', 1)
    expect(slots.put(first)).toBeUndefined()
    expect(slots.put(item('a', 2))).toBe(first)
    expect(slots.size).toBe(1)
    expect(slots.take(5)).toEqual([item('a', 2)])
    expect(slots.size).toBe(0)
  })

  it('serves streams in the order in which they began to wait', () => {
    const slots = new LatestSlots()
    slots.put(item('a', 1))
    slots.put(item('b', 2))
    slots.put(item('a', 3))
    slots.put(item('c', 4))
    expect(slots.take(2).map((taken) => taken.streamId)).toEqual(['a', 'b'])
  })

  it('serves the stream first whose turn was longest ago, though it came back last', () => {
    const slots = new LatestSlots()
    for (const stream of ['a', 'b', 'c']) slots.put(item(stream, 1))
    expect(slots.take(2).map((taken) => taken.streamId)).toEqual(['a', 'b'])
    slots.put(item('b', 2))
    slots.put(item('a', 3))
    expect(slots.take(2).map((taken) => taken.streamId)).toEqual(['c', 'a'])
    slots.put(item('a', 4))
    slots.put(item('c', 5))
    expect(slots.take(1).map((taken) => taken.streamId)).toEqual(['b'])
  })

  it('knows since when the head of the line waits, however new its item', () => {
    const slots = new LatestSlots()
    expect(slots.waitingSinceMs).toBeUndefined()
    slots.put(item('a', 1))
    slots.put(item('b', 2))
    slots.put(item('a', 9))
    expect(slots.waitingSinceMs).toBe(1)
    slots.take(1)
    expect(slots.waitingSinceMs).toBe(2)
  })

  it('forgets a stream', () => {
    const slots = new LatestSlots()
    slots.put(item('a', 1))
    expect(slots.remove('a')).toEqual(item('a', 1))
    expect(slots.remove('a')).toBeUndefined()
    expect(slots.size).toBe(0)
  })
})
