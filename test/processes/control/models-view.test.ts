import { expect, it } from 'vitest'
import { modelsView, type AskedForModels } from '../../../src/processes/control/models-view.js'
import { counted } from '../../../src/runtime/counted-statistics.js'
import { StatisticsRecorder } from '../../../src/runtime/statistics-recorder.js'
import { fakeModel, fakeModelServer } from '../../support/fake-models.js'

function countedFrames(model: string, frames: number) {
  const recorder = new StatisticsRecorder(model, '1')
  const times = { computeInputNs: 1e6, computeInferNs: 20e6, computeOutputNs: 1e6 }
  for (let frame = 0; frame < frames; frame += 1) {
    recorder.recordSuccess(1, 24e6, 2e6, times)
    recorder.recordExecution(1, times)
  }
  return counted(recorder)
}

function serverWith(models: Awaited<ReturnType<AskedForModels['modelViews']>>): AskedForModels {
  return { health: fakeModelServer, control: 'asked', modelViews: async () => models }
}

it('puts what cameras did beside what API clients asked', async () => {
  const { forCameras: _, ...known } = fakeModel('ppe_detect')
  const view = await modelsView(serverWith([known]), [countedFrames('ppe_detect', 10)], 'ppe')
  expect(view.server).toMatchObject({ state: 'ready', control: 'asked', isTold: true })
  expect(view.items).toHaveLength(1)
  expect(view.items[0]?.versions).toHaveLength(1)
  expect(view.items[0]?.forCameras).toMatchObject([
    { version: '1', frames: 10, runs: 10, failures: 0, inferMs: 200 },
  ])
  expect(view.items[0]?.forCameras[0]?.latencyMs?.p99).toBeGreaterThan(10)
})

it('knows the models of cameras where the model server tells nothing, or there is none', async () => {
  const cameras = [countedFrames('b', 1), countedFrames('a', 2)]
  for (const server of [serverWith(undefined), undefined]) {
    const view = await modelsView(server, cameras, 'ppe')
    expect(view.items.map(({ name, versions }) => [name, versions.length])).toEqual([
      ['a', 0],
      ['b', 0],
    ])
    expect(view.server.isTold).toBe(false)
    expect(view.server.state).toBe(server === undefined ? 'off' : 'ready')
  }
})
