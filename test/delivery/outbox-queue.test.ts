import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { OutboxQueue } from '../../src/delivery/outbox-queue.js'
import type { QueuedRecord } from '../../src/delivery/record-queue.js'
import type { PlacedRecord } from '../../src/store/record.js'

const limits = { maxRecords: 1e6, maxBytes: 1e9 }

function queued(position: number, isStored: boolean, bytes = 10): QueuedRecord {
  return {
    ...{ position, isStored, id: String(position), type: 'gantry.detections.v1', cameraId: 'dock-1' },
    time: '2026-11-20T08:15:30.120Z',
    value: Buffer.alloc(bytes, 'x'),
    acceptedMs: position,
  }
}

/** A store of which the test knows what is in it. */
function store() {
  const kept: PlacedRecord[] = []
  let settled = 0
  return {
    kept,
    settled: () => settled,
    add: (position: number, bytes = 10) =>
      kept.push({ ...queued(position, true, bytes), seq: position, timeMs: Date.now() }),
    forSink: async (_sink: string, after: number, below: number, most: { records: number; bytes: number }) =>
      kept.filter(({ position }) => position > after && position < below).slice(0, most.records),
    settle: (_sink: string, position: number) => {
      settled = Math.max(settled, position)
    },
  }
}

const ids = (records: readonly QueuedRecord[]) => records.map(({ position }) => position)

describe('OutboxQueue', () => {
  it('R108: begins with what an earlier run left, then goes on with what comes', async () => {
    const from = store()
    for (const position of [3, 4, 7, 9]) from.add(position)
    const queue = new OutboxQueue('kafka', from, limits)
    queue.resume({ sink: 'kafka', settled: 3, pending: 3 }, 9)
    from.add(10)
    queue.push(queued(10, true))
    expect([queue.length, queue.oldestAcceptedMs]).toEqual([4, 0])
    expect(ids(await queue.lease(2, 1e6))).toEqual([4, 7])
    expect(ids(await queue.lease(9, 1e6))).toEqual([9, 10])
    expect(await queue.lease(9, 1e6)).toEqual([])
    expect(queue.length).toBe(0)
  })

  it('holds few records in memory, however many wait', async () => {
    const from = store()
    const queue = new OutboxQueue('kafka', from, limits)
    for (let position = 1; position <= 9_000; position += 1) {
      from.add(position, 1_000)
      queue.push(queued(position, true, 1_000))
    }
    expect(queue.length).toBe(9_000)
    const leased: number[] = []
    for (let some = await queue.lease(500, 1e6); some.length > 0; some = await queue.lease(500, 1e6)) {
      leased.push(...ids(some))
      queue.settle(some)
    }
    expect(leased).toEqual(Array.from({ length: 9_000 }, (_, index) => index + 1))
    expect(from.settled()).toBe(9_000)
  })

  it('settles up to the first that is not delivered', async () => {
    const from = store()
    const queue = new OutboxQueue('kafka', from, limits)
    for (const position of [1, 2, 3, 4, 5]) queue.push(queued(position, true))
    const leased = await queue.lease(4, 1e6)
    queue.settle(leased.slice(2))
    expect(from.settled()).toBe(0)
    queue.settle(leased.slice(0, 1))
    expect(from.settled()).toBe(1)
    queue.release(leased.slice(1, 2))
    expect(from.settled()).toBe(1)
    expect(queue.close()).toEqual({ lost: 0, kept: 2 })
  })

  it('lets the oldest of those go that are in memory alone, beyond its bounds, and says how many', () => {
    const queue = new OutboxQueue('kafka', store(), { maxRecords: 3, maxBytes: 1e6 })
    expect([1, 2].map((position) => queue.push(queued(position, true)))).toEqual([0, 0])
    expect([3, 4, 5, 6, 7].map((position) => queue.push(queued(position, false)))).toEqual([0, 0, 0, 1, 1])
    expect(queue.close()).toEqual({ lost: 3, kept: 2 })
  })

  it('loses none, repeats none, and keeps the order, whatever is stored and whoever is slow', async () => {
    const step = fc.oneof(
      fc.record({
        kind: fc.constant('push' as const),
        isStored: fc.boolean(),
        bytes: fc.integer({ min: 1, max: 900_000 }),
      }),
      fc.record({ kind: fc.constant('lease' as const), records: fc.integer({ min: 1, max: 5 }) }),
      fc.record({ kind: fc.constant('release' as const) }),
      fc.record({ kind: fc.constant('settle' as const) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const from = store()
        const queue = new OutboxQueue('kafka', from, limits)
        let position = 0
        let open: readonly QueuedRecord[] = []
        const done: number[] = []
        for (const taken of [...steps, { kind: 'end' as const }]) {
          if (taken.kind === 'push') {
            position += 1
            if (taken.isStored) from.add(position, taken.bytes)
            queue.push(queued(position, taken.isStored, taken.bytes))
          } else if (taken.kind === 'lease' && open.length === 0) open = await queue.lease(taken.records, 2e6)
          else if (taken.kind === 'release') {
            queue.release(open)
            open = []
          } else if (taken.kind === 'settle' || taken.kind === 'end') {
            done.push(...ids(open))
            queue.settle(open)
            open = []
          }
          expect(queue.length + open.length + done.length).toBe(position)
        }
        for (let some = await queue.lease(7, 1e6); some.length > 0; some = await queue.lease(7, 1e6)) {
          done.push(...ids(some))
          queue.settle(some)
        }
        expect(done).toEqual(Array.from({ length: position }, (_, index) => index + 1))
        expect(from.settled()).toBe(position)
      }),
      { numRuns: 300 },
    )
  })
})
