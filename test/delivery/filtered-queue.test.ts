import { expect, it } from 'vitest'
import { sinkFilterSchema } from '../../src/config/sink-filter.js'
import { FilteredQueue } from '../../src/delivery/filtered-queue.js'
import { OutboxQueue } from '../../src/delivery/outbox-queue.js'
import { RecordFilter } from '../../src/delivery/record-filter.js'
import { queuedRecord } from '../support/queued-record.js'

it('settles what the filter leaves out, so that the store need not keep it, and leases what is behind it', async () => {
  const settled: number[] = []
  const store = {
    forSink: async () => [],
    settle: (_: string, position: number) => void settled.push(position),
  }
  const inner = new OutboxQueue('test', store, { maxRecords: 10, maxBytes: 1024 })
  const left: string[] = []
  const filter = new RecordFilter(sinkFilterSchema.parse({ cameras: ['b'], maxPerMinute: 1 }))
  const queue = new FilteredQueue(inner, filter, (kind) => left.push(kind))
  for (const id of ['a1', 'a2', 'b3', 'b4', 'a5']) queue.push({ ...queuedRecord(id), isStored: true })
  const leased = await queue.lease(2, 1024)
  expect(leased.map(({ id }) => id)).toEqual(['b3'])
  expect(settled.at(-1)).toBe(2)
  queue.settle(leased)
  expect(await queue.lease(2, 1024)).toEqual([])
  expect(settled.at(-1)).toBe(5)
  expect(left).toEqual(['filtered', 'filtered', 'over_limit', 'filtered'])
  expect(queue.length).toBe(0)
})
