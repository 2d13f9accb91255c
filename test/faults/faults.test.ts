import { expect, it } from 'vitest'
import { kafkaMissing } from '../support/kafka.js'
import { killComplaints, killRounds } from './kill-rounds.js'

/** The short form; `npm run test:faults` is the long one. */
it.skipIf((await kafkaMissing()) !== undefined)(
  'R15: nothing that was accepted is missing after kills at any moment, and nothing is counted twice by its id',
  async () => {
    const report = await killRounds(4, () => undefined)
    expect(killComplaints(report)).toEqual([])
    expect(report.accepted).toBeGreaterThanOrEqual(report.seen)
    expect(report.seen).toBeGreaterThan(10)
  },
  300_000,
)
