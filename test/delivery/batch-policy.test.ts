import { describe, expect, it } from 'vitest'
import { decideSend } from '../../src/delivery/batch-policy.js'

const limits = { maxBatchRecords: 100, lingerMs: 20 }

describe('decideSend', () => {
  it.each([
    ['rests without records', 0, 0, false, { kind: 'idle' }],
    ['rests without records at the end too', 0, 0, true, { kind: 'idle' }],
    ['waits for what is left of the linger', 3, 8, false, { kind: 'wait', forMs: 12 }],
    ['sends once the oldest has lingered', 3, 20, false, { kind: 'send' }],
    ['sends a full batch at once', 100, 0, false, { kind: 'send' }],
    ['does not linger at the end', 1, 0, true, { kind: 'send' }],
  ])('%s', (_, count, oldestMs, draining, decision) => {
    expect(decideSend({ count, oldestMs, draining }, limits)).toEqual(decision)
  })
})
