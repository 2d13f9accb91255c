import { describe, expect, it } from 'vitest'
import { batchRules, decideDynamic } from '../../../src/runtime/policies/dynamic.js'
import type { BatchDecision } from '../../../src/runtime/policies/policy.js'

const run = (count: number): BatchDecision => ({ kind: 'run', count })
const wait = (forMs: number): BatchDecision => ({ kind: 'wait', forMs })

/** `2 1 3b`: batch sizes, and a letter where the shape differs. */
function candidates(text: string) {
  return text
    .split(' ')
    .filter((word) => word !== '')
    .map((word) => ({ batchSize: Number.parseInt(word), shapeKey: word.replace(/\d+/, '') }))
}

describe('decideDynamic, with sizes 4 and 8 preferred and 10 at most', () => {
  const rules = { maxBatchSize: 10, preferredSizes: [4, 8], maxDelayMs: 20 }

  it.each<[string, string, number, BatchDecision]>([
    ['has nothing to do', '', 0, { kind: 'idle' }],
    ['waits for a preferred size', '1 1 1', 5, wait(15)],
    ['runs the preferred size at once', '1 1 1 1', 0, run(4)],
    ['runs the largest preferred size that can be reached', '1 1 1 1 1 1 1 1 1', 0, run(8)],
    ['runs the smaller one if the larger cannot be reached', '2 2 2', 0, run(2)],
    ['counts items and not requests', '3 5', 0, run(2)],
    ['runs all there is once the delay has passed', '1 1 1', 20, run(3)],
    ['runs past the preferred size once the delay has passed', '1 1 1 1 1', 20, run(5)],
    ['never runs more than the limit, delay or not', '3 3 3 3', 20, run(3)],
    ['runs what fits if the next would be too large for any preferred size', '3 6', 0, run(1)],
    ['runs a batch that the next request would overfill', '7 4', 0, run(1)],
    ['runs a batch that the shape of the next request closes', '1 1 1b', 0, run(2)],
    ['prefers the preferred size to what the shape closes', '2 2 1 1b', 0, run(2)],
    ['runs a request over the preferred sizes alone', '9', 0, run(1)],
    ['waits with one request of another shape behind nothing', '1b', 0, wait(20)],
  ])('%s', (_, waiting, oldestMs, decision) => {
    expect(
      decideDynamic({ candidates: candidates(waiting), oldestMs, timeoutInMs: undefined }, rules),
    ).toEqual(decision)
  })

  it('wakes up for a time-out that comes before the end of the delay', () => {
    const waiting = { candidates: candidates('1'), oldestMs: 5, timeoutInMs: 3 }
    expect(decideDynamic(waiting, rules)).toEqual(wait(3))
    expect(decideDynamic({ ...waiting, timeoutInMs: 30 }, rules)).toEqual(wait(15))
  })
})

describe('decideDynamic, without delay', () => {
  const rules = { maxBatchSize: 4, preferredSizes: [4], maxDelayMs: 0 }

  it.each<[string, string, BatchDecision]>([
    ['runs whatever is there', '1 1', run(2)],
    ['runs no more than the limit', '1 1 1 1 1', run(4)],
    ['stops at another shape', '1 1b 1', run(1)],
  ])('%s', (_, waiting, decision) => {
    expect(
      decideDynamic({ candidates: candidates(waiting), oldestMs: 0, timeoutInMs: undefined }, rules),
    ).toEqual(decision)
  })
})

describe('rules of batches that are filled up to sizes', () => {
  const costs = [
    { size: 1, ms: 5 },
    { size: 4, ms: 6 },
  ]

  it('go up to the largest size that is warm, and prefer what can be reached', () => {
    expect(batchRules(16, [2, 4, 16], 0, costs)).toMatchObject({ maxBatchSize: 4, preferredSizes: [2, 4] })
    expect(batchRules(16, [16], 0, costs)).toMatchObject({ maxBatchSize: 4, preferredSizes: [4] })
    expect(batchRules(16, [16], 0)).toMatchObject({ maxBatchSize: 16, preferredSizes: [16] })
  })

  it('run a larger request alone', () => {
    const rules = batchRules(16, [], 1_000, costs)!
    const waiting = { candidates: candidates('9 1'), oldestMs: 0, timeoutInMs: undefined }
    expect(decideDynamic(waiting, rules)).toEqual(run(1))
  })
})
