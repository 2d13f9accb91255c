import { expect, it } from 'vitest'
import type { Outcome } from './outcome.js'
import { tableOf } from './results-table.js'

const outcome = (test: string, more: Partial<Outcome> = {}): Outcome => ({
  ...{ suite: 'L0_infer', test, variant: '', outcome: 'passed', reason: '' },
  ...more,
})

it('counts what passes, leaves out what Gantry is not for, and names each that fails', () => {
  const outcomes = [
    outcome('a'),
    outcome('b', { outcome: 'failed', reason: 'it says so', variant: '4' }),
    outcome('c', { outcome: 'failed', reason: 'no', needs: 'CUDA shared memory' }),
  ]
  const { text, isReached } = tableOf([{ name: 'L0_infer', reach: 1, outcomes }])
  expect(text).toContain('| L0_infer | 1 | 2 | 1 | 1 |\n')
  expect(text).toContain('L0_infer b (4): failed: it says so\nL0_infer c: needs CUDA shared memory\n')
  expect(isReached).toBe(true)
  expect(tableOf([{ name: 'L0_infer', reach: 2, outcomes }]).isReached).toBe(false)
  expect(tableOf([{ name: 'L0_infer', reach: 1, outcomes: [] }]).isReached).toBe(false)
})
