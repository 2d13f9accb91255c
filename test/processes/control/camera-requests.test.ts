import { describe, expect, it } from 'vitest'
import { CameraDirectory } from '../../../src/cameras/camera-directory.js'
import { CameraStore } from '../../../src/cameras/camera-store.js'
import { newCameraSchema } from '../../../src/config/camera.js'
import { createServiceMetrics } from '../../../src/metrics/service-metrics.js'
import { CameraEngines } from '../../../src/processes/control/camera-engines.js'
import { CameraRequests } from '../../../src/processes/control/camera-requests.js'
import type { EngineProcess } from '../../../src/processes/engine/engine-process.js'
import { silentLog } from '../../support/silent-log.js'
import { tempDir } from '../../support/temp-dir.js'

type Told = Parameters<EngineProcess['tell']>[0]

/** Requests of a service with two engines that take down what they are told. */
function setting({ engineHears = true } = {}) {
  const dir = tempDir()
  const directory = new CameraDirectory({
    store: new CameraStore(dir),
    metrics: createServiceMetrics(),
    engines: 2,
    mediaRoot: dir,
    cameraNetworks: { allow: [], deny: [] },
    loopbackClosed: false,
  })
  const told: Told[] = []
  const engine = {
    tell: (message: Told) => {
      told.push(message)
      return engineHears
    },
    ask: () => Promise.reject(new Error('it has no camera')),
  }
  const removed: string[] = []
  const forgotten: string[] = []
  const engines = new CameraEngines(directory, [engine, engine])
  const requests = new CameraRequests({
    directory,
    engines,
    capacity: { admit: async (_, take) => ({ taken: await take(), warnings: ['there is no room'] }) },
    cache: {
      forget: (id) => {
        forgotten.push(id)
        return Promise.reject(new Error('the cache is away'))
      },
    },
    modelServer: undefined,
    log: silentLog(),
    removed: (id) => removed.push(id),
  })
  return { directory, engines, requests, told, removed, forgotten }
}

const camera = (id: string, more: object = {}) =>
  newCameraSchema.parse({ id, url: 'rtsp://192.0.2.10:554/stream1', ...more })

describe('requests about cameras', () => {
  it('reach the engine in the order in which they came', async () => {
    const { requests, told } = setting()
    await Promise.all([
      requests.add(camera('dock', { persist: true })),
      requests.patch('dock', { sampleFps: 2 }),
      requests.patch('dock', { sampleFps: 1 }),
      requests.remove('dock'),
    ])
    const seen = told.map((message) =>
      message.type === 'setCamera' ? message.camera.sampleFps : message.type,
    )
    expect(seen).toEqual([5, 2, 1, 'removeCamera'])
  })

  it('ask for room for a camera that is one more than before, and for no other', async () => {
    const { requests } = setting()
    expect((await requests.add(camera('dock'))).warnings).toEqual(['there is no room'])
    expect((await requests.add(camera('off', { enabled: false }))).warnings).toBeUndefined()
    expect((await requests.patch('dock', { sampleFps: 1 })).warnings).toBeUndefined()
    expect((await requests.patch('off', { enabled: true })).warnings).toEqual(['there is no room'])
  })

  it('remove a camera whose engine does not hear, and whose results the cache does not forget', async () => {
    const { directory, requests, removed } = setting({ engineHears: false })
    await requests.add(camera('dock'))
    await requests.remove('dock')
    expect([removed, directory.size, directory.leaving('dock')]).toEqual([['dock'], 0, undefined])
  })

  it('forget results of a camera that is removed everywhere, also where another node had it last', async () => {
    const { requests, forgotten } = setting()
    await requests.follow(camera('dock'))
    await requests.release('dock', false)
    expect(forgotten).toEqual([])
    await requests.release('dock', true)
    expect(forgotten).toEqual(['dock'])
  })

  it('are told to come again while the camera moves, which no engine is told of either', async () => {
    const { directory, engines, requests, told } = setting()
    await requests.add(camera('dock'))
    const entry = directory.get('dock')
    entry.isMoving = true
    const before = told.length
    engines.assign(entry)
    expect(told.length).toBe(before)
    await expect(requests.snapshot('dock', { overlay: true, own: true })).rejects.toMatchObject({
      code: 'GANTRY_ENGINE_UNAVAILABLE',
    })
    await expect(requests.push('other', new Uint8Array())).rejects.toMatchObject({
      code: 'GANTRY_CAMERA_NOT_FOUND',
    })
  })
})
