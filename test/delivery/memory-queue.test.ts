import { describe, expect, it } from 'vitest'
import { MemoryQueue } from '../../src/delivery/memory-queue.js'
import type { QueuedRecord } from '../../src/delivery/record-queue.js'

const record = (id: number, bytes = 10): QueuedRecord => ({
  id: String(id),
  type: 'gantry.detections.v1',
  cameraId: 'dock-1',
  time: '2026-11-20T08:15:30.120Z',
  value: Buffer.alloc(bytes, 'x'),
  acceptedMs: id,
})
const ids = (records: readonly QueuedRecord[]) => records.map(({ id }) => Number(id))

describe('MemoryQueue', () => {
  it('leases the oldest, bounded by count and bytes, but always one', async () => {
    const queue = new MemoryQueue({ maxRecords: 100, maxBytes: 1e6 })
    for (let id = 1; id <= 6; id += 1) queue.push(record(id, id === 4 ? 500 : 10))
    expect(ids(await queue.lease(2, 1e6))).toEqual([1, 2])
    expect(ids(await queue.lease(9, 100))).toEqual([3])
    expect(ids(await queue.lease(9, 100))).toEqual([4])
    expect(queue.oldestAcceptedMs).toBe(5)
    expect(ids(await queue.lease(9, 1e6))).toEqual([5, 6])
    expect(await queue.lease(9, 1e6)).toEqual([])
    expect(queue.oldestAcceptedMs).toBeUndefined()
  })

  it('drops the oldest beyond its count and says how many', async () => {
    const queue = new MemoryQueue({ maxRecords: 3, maxBytes: 1e6 })
    expect([1, 2, 3, 4, 5].map((id) => queue.push(record(id)))).toEqual([0, 0, 0, 1, 1])
    expect(ids(await queue.lease(9, 1e6))).toEqual([3, 4, 5])
  })

  it('drops as many as a large record needs, and keeps a record larger than the bound', async () => {
    const queue = new MemoryQueue({ maxRecords: 100, maxBytes: 100 })
    for (let id = 1; id <= 10; id += 1) queue.push(record(id))
    expect(queue.push(record(11, 35))).toBe(4)
    expect(queue.push(record(12, 500))).toBe(7)
    expect(ids(await queue.lease(9, 1e6))).toEqual([12])
    expect(queue.push(record(13, 90))).toBe(0)
  })

  it('puts released records back in front', async () => {
    const queue = new MemoryQueue({ maxRecords: 100, maxBytes: 1e6 })
    for (let id = 1; id <= 4; id += 1) queue.push(record(id))
    queue.release(await queue.lease(2, 1e6))
    expect(ids(await queue.lease(9, 1e6))).toEqual([1, 2, 3, 4])
  })

  it('keeps order and count over many turns', async () => {
    const queue = new MemoryQueue({ maxRecords: 3_000, maxBytes: 1e9 })
    const out: number[] = []
    for (let id = 0; id < 20_000; id += 1) {
      queue.push(record(id))
      if (id % 7 === 6) out.push(...ids(await queue.lease(7, 1e9)))
    }
    out.push(...ids(await queue.lease(3_000, 1e9)))
    expect(out).toEqual(Array.from({ length: 20_000 }, (_, id) => id))
    expect(queue.length).toBe(0)
  })
})
