import { expect, it } from 'vitest'
import { sequenceStrategy } from '../../../src/runtime/policies/sequence.js'
import type { PendingRequest } from '../../../src/runtime/pending-request.js'
import { newSequence, type Sequence } from '../../../src/runtime/sequence-slots.js'

/** A sequence that has a request to run. */
function ready(id: number): Sequence {
  const sequence = newSequence(String(id))
  const request = { enqueuedMs: id, batchSize: 1, shapeKey: '', priority: 0, timeoutUs: 0 }
  sequence.queue.push(request as unknown as PendingRequest)
  return sequence
}

const slots = Array.from({ length: 5 }, (_, id) => ready(id))
const oldest = {
  oldest: { preferred_batch_size: [], max_candidate_sequences: 8 },
  control_input: [],
  state: [],
}

it.each([
  ['a large run takes long', 60, 4],
  ['a large run takes hardly longer', 11, 5],
])('weighs filling up a batch of sequences against waiting: %s', (_, largestMs, expected) => {
  const costs = [
    { size: 1, ms: 8 },
    { size: 4, ms: 10 },
    { size: 8, ms: largestMs },
  ]
  const decision = sequenceStrategy(oldest, 8, costs).decide(slots, 10)
  expect(decision).toMatchObject({ kind: 'run' })
  expect(decision.kind === 'run' && decision.batch.map((each) => each?.id)).toEqual(
    slots.slice(0, expected).map(({ id }) => id),
  )
})

it('runs all that wait where runs have no sizes', () => {
  const decision = sequenceStrategy(oldest, 8).decide(slots, 10)
  expect(decision.kind === 'run' && decision.batch).toHaveLength(5)
})

it('keeps every sequence at its place in the batch, whatever runs take, where places mean something', () => {
  const direct = { direct: {}, control_input: [], state: [] }
  const costs = [
    { size: 1, ms: 1 },
    { size: 8, ms: 1_000 },
  ]
  const decision = sequenceStrategy(direct, 8, costs).decide([undefined, ...slots], 10)
  expect(decision.kind === 'run' && decision.batch.map((each) => each?.id)).toEqual([
    undefined,
    ...slots.map(({ id }) => id),
  ])
})
