import { afterEach, describe, expect, it, vi } from 'vitest'
import { inferenceSchema } from '../../../src/config/inference.js'
import { devicesFor } from '../../../src/processes/control/devices-for.js'
import { addModel, redDetector } from '../../support/onnx-models.js'
import { tempDir } from '../../support/temp-dir.js'

afterEach(() => vi.unstubAllEnvs())

/** @param detector - configuration of the detector of the cameras. */
function devices(inference: object, engines = 1, isInstalled = true, detector = '') {
  vi.stubEnv('CUDA_VISIBLE_DEVICES', '0,1')
  const dir = tempDir()
  addModel(dir, 'red', { onnx: redDetector('uint8-nhwc'), config: detector })
  const config = { inference: inferenceSchema.parse(inference), engines, ensemble: 'red' }
  return devicesFor(config, [dir], isInstalled)
}

describe('GPUs in use', () => {
  it.each([
    [{}, 1, [0], [0]],
    [{}, 3, [0], [0, 0, 0]],
    [{ deviceId: 1 }, 2, [1], [1, 1]],
    [{ devices: [0, 1] }, 1, [0, 1], [0, 1]],
    [{ devices: [1, 3] }, 3, [1, 3], [1, 3, 1, 3]],
    [{ devices: 'auto' }, 1, [0, 1], [0, 1]],
    [{ devices: [0, 1] }, 0, [0, 1], []],
  ])('%j with %i engines', async (inference, engines, all, engineDevices) => {
    expect(await devices(inference, engines)).toEqual({ all, engineDevices })
  })

  it('are of no matter where nothing runs on them: engines are as many as are asked for', async () => {
    expect(await devices({ devices: [0, 1] }, 1, false)).toEqual({ all: [0, 1], engineDevices: [0] })
    expect(await devices({ devices: 'auto' }, 2, false)).toEqual({ all: [0], engineDevices: [0, 0] })
  })

  it('are for cameras those that their detector names', async () => {
    const named = 'instance_group [ { kind: KIND_GPU gpus: [1, 2] }, { kind: KIND_CPU } ]'
    expect(await devices({}, 1, true, named)).toEqual({ all: [0], engineDevices: [1, 2] })
    const any = 'instance_group [ { kind: KIND_GPU gpus: [1] }, { kind: KIND_GPU } ]'
    expect(await devices({ devices: [0, 1] }, 1, true, any)).toEqual({ all: [0, 1], engineDevices: [0, 1] })
  })
})
