import { describe, expect, it } from 'vitest'
import { cameraSchema } from '../../../src/config/camera.js'
import { cameraNetworksSchema } from '../../../src/config/camera-networks.js'
import { inferenceSchema } from '../../../src/config/inference.js'
import { Engine } from '../../../src/processes/engine/engine.js'
import type { EngineQuestion } from '../../../src/processes/engine/protocol.js'
import { recordingLog } from '../../support/silent-log.js'

function engine() {
  const { log, lines } = recordingLog()
  const setup = {
    index: 0,
    repositories: [],
    ensemble: 'none',
    inference: inferenceSchema.parse({}),
    allowJsBackends: false,
    maxConcurrentConnects: 1,
    mediaRoot: '/',
    cameraNetworks: cameraNetworksSchema.parse({}),
    log: { level: 'silent' },
  } as const
  return { engine: new Engine(setup as never, () => undefined, log), lines }
}

describe('a fault of its own', () => {
  it('is internal and logged with its stack when a question is not known', async () => {
    const { engine: asked, lines } = engine()
    const question = { type: 'riddle' } as unknown as EngineQuestion
    await expect(asked.answer(question)).rejects.toMatchObject({ code: 'GANTRY_INTERNAL' })
    expect(lines).toMatchObject([
      { question: 'riddle', err: { stack: expect.stringContaining('engine.ts') as string } },
    ])
  })

  it('is internal when a camera comes before its detector', async () => {
    const camera = cameraSchema.parse({ id: 'a', url: 'push:' })
    const loopbackClosed = { analysed: false, main: false }
    const set = engine().engine.setCamera({ camera, firstSeq: 1, loopbackClosed })
    await expect(set).rejects.toMatchObject({ code: 'GANTRY_INTERNAL' })
  })
})

it('tells who asks for a camera that it does not have so, and logs nothing', async () => {
  const { engine: asked, lines } = engine()
  const question = { type: 'snapshot', cameraId: 'a', overlay: false } as const
  await expect(asked.answer(question)).rejects.toMatchObject({ code: 'GANTRY_CAMERA_NOT_FOUND' })
  expect(lines).toEqual([])
})
