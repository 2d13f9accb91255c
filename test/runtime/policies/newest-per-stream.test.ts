import { describe, expect, it } from 'vitest'
import { decideNewest } from '../../../src/runtime/policies/newest-per-stream.js'

const limits = { maxBatchSize: 4, maxQueueDelayMs: 10 }
const single = { maxBatchSize: 1, maxQueueDelayMs: 10 }

describe('decideNewest', () => {
  it.each([
    ['does nothing when nothing waits', limits, { count: 0, oldestMs: 0, possible: 8 }, { kind: 'idle' }],
    ['runs a full batch at once', limits, { count: 6, oldestMs: 0, possible: 8 }, { kind: 'run', count: 4 }],
    [
      'waits only for what is left of the delay',
      limits,
      { count: 1, oldestMs: 7, possible: 8 },
      { kind: 'wait', forMs: 3 },
    ],
    [
      'runs a lone item once its delay has passed',
      limits,
      { count: 1, oldestMs: 10, possible: 8 },
      { kind: 'run', count: 1 },
    ],
    [
      'runs what there is when the delay has long passed',
      limits,
      { count: 3, oldestMs: 50, possible: 8 },
      { kind: 'run', count: 3 },
    ],
    [
      'does not wait for streams that do not exist',
      limits,
      { count: 2, oldestMs: 0, possible: 2 },
      { kind: 'run', count: 2 },
    ],
    [
      'never waits with batch size 1',
      single,
      { count: 1, oldestMs: 0, possible: 8 },
      { kind: 'run', count: 1 },
    ],
    [
      'takes one of many with batch size 1',
      single,
      { count: 5, oldestMs: 0, possible: 8 },
      { kind: 'run', count: 1 },
    ],
    [
      'runs an item whose stream was forgotten',
      limits,
      { count: 1, oldestMs: 0, possible: 0 },
      { kind: 'run', count: 1 },
    ],
    [
      'never waits without a delay',
      { maxBatchSize: 4, maxQueueDelayMs: 0 },
      { count: 1, oldestMs: 0, possible: 8 },
      { kind: 'run', count: 1 },
    ],
  ])('%s', (_, given, waiting, decision) => {
    expect(decideNewest(waiting, given)).toEqual(decision)
  })
})
