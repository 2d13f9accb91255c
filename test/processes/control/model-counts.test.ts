import { describe, expect, it } from 'vitest'
import { counted, type CountedStatistics } from '../../../src/runtime/counted-statistics.js'
import { StatisticsRecorder } from '../../../src/runtime/statistics-recorder.js'
import { ModelCounts } from '../../../src/processes/control/model-counts.js'
import { metricIn } from '../../support/service.js'

function counts(requests: number): CountedStatistics {
  const recorder = new StatisticsRecorder('m', '1')
  const times = { computeInputNs: 0, computeInferNs: 1e6, computeOutputNs: 0 }
  for (let request = 0; request < requests; request++) recorder.recordSuccess(1, 1e6, 0, times)
  return counted(recorder)
}

const none = () => Promise.resolve(undefined)
const line = /nv_inference_count\{model="m",version="1"\}/

describe('ModelCounts', () => {
  it('says nothing where nothing was counted', async () => {
    await expect(new ModelCounts().text(none)).resolves.toBe('')
  })

  it('adds up engines, and keeps what those counted that are gone', async () => {
    const models = new ModelCounts()
    models.report(0, [counts(2)])
    models.report(1, [counts(3)])
    models.report(0, [counts(4)])
    expect(metricIn(await models.text(none), line)).toBe(7)
    models.engineGone(0)
    expect(metricIn(await models.text(none), line)).toBe(7)
    models.report(0, [counts(1)])
    expect(metricIn(await models.text(none), line)).toBe(8)
  })

  it('keeps what the model server had counted while that is away, and once it has begun anew', async () => {
    const models = new ModelCounts()
    models.report(0, [counts(2)])
    await models.text(({ cameras, clients }) => {
      expect([cameras, clients]).toEqual([[counts(2)], []])
      return Promise.resolve({ text: '', clients: [counts(5)], ended: [] })
    })
    expect(metricIn(await models.text(none), line)).toBe(7)
    await models.text(({ clients }) => Promise.resolve({ text: '', clients: [counts(1)], ended: clients }))
    await models.text(({ cameras, clients }) => {
      expect(cameras.map(({ inferenceCount }) => inferenceCount)).toEqual([7])
      expect(clients).toEqual([counts(1)])
      return Promise.resolve(undefined)
    })
  })
})
