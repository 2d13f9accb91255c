import { expect, it } from 'vitest'
import { kafkaMissing } from '../support/kafka.js'
import { brokerOutage } from './broker-outage.js'
import { outageComplaints } from './outage-complaints.js'

const missing = await kafkaMissing()

/** The short form; `npm run soak:broker` is the long one. */
it.skipIf(missing !== undefined)(
  'R12: a broker that is away costs neither start nor memory; the oldest go, counted; the rest is delivered at once',
  async () => {
    const options = { outageMs: 15_000, recordsPerSecond: 400, maxQueuedRecords: 4_000 }
    const report = await brokerOutage(options, () => undefined)
    expect(outageComplaints(report, options.maxQueuedRecords)).toEqual([])
    expect(report.dropped).toBeGreaterThan(0)
  },
  180_000,
)

it.skipIf(missing !== undefined)(
  'R12: with the store nothing goes: all that came while the broker was away is delivered, and memory does not grow',
  async () => {
    const report = await brokerOutage({ outageMs: 15_000, recordsPerSecond: 400 }, () => undefined)
    expect(outageComplaints(report, Infinity)).toEqual([])
    expect(report.mostQueued).toBeGreaterThan(4_000)
  },
  180_000,
)
