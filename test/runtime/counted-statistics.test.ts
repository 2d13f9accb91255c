import { describe, expect, it } from 'vitest'
import { addUp, beganAnew, counted } from '../../src/runtime/counted-statistics.js'
import { StatisticsRecorder } from '../../src/runtime/statistics-recorder.js'

function recorderOf(model: string, requests: number): StatisticsRecorder {
  const recorder = new StatisticsRecorder(model, '1', { site: 'x' })
  const times = { computeInputNs: 1_000, computeInferNs: 2_000_000, computeOutputNs: 3_000 }
  for (let request = 0; request < requests; request++) {
    recorder.recordExecution(1, times)
    recorder.recordSuccess(1, 2_500_000, 400_000, times)
  }
  recorder.recordFailure('BACKEND', 1_000)
  recorder.pending = requests
  return recorder
}

describe('statistics of several processes', () => {
  it('are what a recorder that saw all of it has', () => {
    const own = counted(recorderOf('m', 2))
    const other = JSON.parse(JSON.stringify(counted(recorderOf('m', 3)))) as typeof own
    const whole = recorderOf('m', 5)
    whole.recordFailure('BACKEND', 1_000)
    expect(addUp([own, other])).toEqual([counted(whole)])
  })

  it('are kept apart by model', () => {
    const all = addUp([recorderOf('a', 1), recorderOf('b', 2), recorderOf('a', 4)].map(counted))
    expect(all.map(({ model, inferenceCount }) => [model, inferenceCount])).toEqual([
      ['a', 5],
      ['b', 2],
    ])
  })

  it('tell that counting began anew', () => {
    const before = counted(recorderOf('m', 2))
    expect(beganAnew(before, undefined)).toBe(true)
    expect(beganAnew(before, counted(recorderOf('m', 1)))).toBe(true)
    expect(beganAnew(before, counted(recorderOf('m', 2)))).toBe(false)
  })
})
