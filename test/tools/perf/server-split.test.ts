import { describe, expect, it } from 'vitest'
import { requestDurations } from '../../../src/runtime/statistics.js'
import type { ServedStatistics } from '../../../src/tools/client/kserve-client.js'
import { splitBetween } from '../../../src/tools/perf/server-split.js'

type Parts = Partial<Record<(typeof requestDurations)[number], readonly [count: number, ms: number]>>

function counted(parts: Parts, version = '1'): ServedStatistics {
  const all = Object.fromEntries(
    requestDurations.map((part) => {
      const [count, ms] = parts[part] ?? [0, 0]
      return [part, { count, ns: ms * 1e6 }]
    }),
  ) as ServedStatistics['parts']
  return { name: 'm', version, inferenceCount: 0, executionCount: 0, parts: all }
}
const alone = (...model: ServedStatistics[]) => ({ model, steps: [] })

describe('what a server did between two readings', () => {
  const before = counted({ success: [10, 100], queue: [10, 50], compute_infer: [10, 20] })

  it('is that of a request, in microseconds', () => {
    const after = counted({
      success: [14, 180],
      queue: [14, 58],
      compute_infer: [14, 32],
      compute_input: [14, 2],
    })
    expect(splitBetween(alone(before), alone(after))).toEqual({
      queue: 2_000,
      computeInput: 500,
      computeInfer: 3_000,
      computeOutput: 0,
    })
  })

  it('is not known where no request ended', () => {
    expect(splitBetween(alone(before), alone(before))).toBeUndefined()
  })

  it('is that of the steps of an ensemble together, for a request of the ensemble', () => {
    const step = (requests: number) => [
      counted({
        success: [requests, 0],
        queue: [requests, requests],
        compute_infer: [requests, requests * 4],
      }),
    ]
    const ensemble = (requests: number) => [counted({ success: [requests, 0], queue: [0, 0] })]
    const split = splitBetween(
      { model: ensemble(0), steps: [step(0), step(0)] },
      { model: ensemble(2), steps: [step(2), step(6)] },
    )
    expect(split).toMatchObject({ queue: 4_000, computeInfer: 16_000 })
  })

  it('has the response cache where there is one', () => {
    const after = counted({ success: [12, 0], cache_hit: [1, 1], cache_miss: [1, 3] })
    expect(splitBetween(alone(before), alone(after))).toMatchObject({ cacheHit: 500, cacheMiss: 1_500 })
  })

  it('begins anew with a version that was loaded anew, and adds versions up', () => {
    const anew = counted({ success: [2, 0], queue: [2, 4] })
    const other = counted({ success: [2, 0], queue: [2, 2] }, '2')
    expect(splitBetween(alone(before), alone(anew, other))).toMatchObject({ queue: 1_500 })
  })
})
