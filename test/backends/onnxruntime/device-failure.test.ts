import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import {
  type DeviceFailure,
  onnxRuntimeBackend,
} from '../../../src/backends/onnxruntime/onnxruntime-backend.js'
import { parseModelConfig } from '../../../src/repository/model-config-text.js'
import { contextOf, fp32, requestOf, scheduled, valuesOf } from '../../support/direct-model.js'
import { echoOnnx } from '../../support/model-repository.js'
import { gpuWorkers, nothingIsMissing, VirtualGpus } from '../../support/simulated-gpus.js'
import { tempDir } from '../../support/temp-dir.js'

it('a GPU that fails for good is told with the model and the reason; runs on others go on', async () => {
  const gpus = new VirtualGpus(2)
  vi.stubEnv('VIRTUAL_GPUS', gpus.folder)
  onTestFinished(() => void vi.unstubAllEnvs())
  const failures: DeviceFailure[] = []
  const load = async (name: string, config: string) => {
    const versionDir = join(tempDir(), name, '1')
    mkdirSync(versionDir, { recursive: true })
    writeFileSync(join(versionDir, 'model.onnx'), echoOnnx('float32', [1]))
    const context = contextOf(name, parseModelConfig(config, 'config.pbtxt'), versionDir)
    const backend = onnxRuntimeBackend({
      providers: ['cuda', 'cpu'],
      devices: [0, 1],
      intraOpThreads: 1,
      workerEntry: gpuWorkers.onnx,
      missing: nothingIsMissing,
      onDeviceFailed: (failure) => failures.push(failure),
    })
    const model = await scheduled(await backend.open(context), context)
    onTestFinished(() => model.stop(5_000))
    return model
  }
  const first = await load('first', 'instance_group { gpus: [0] }')
  const second = await load('second', 'instance_group { gpus: [1] }')
  const ask = async (model: typeof first) =>
    (await model.infer(requestOf([fp32('in0', [1], [7])]))).flatMap(valuesOf)
  expect(await ask(second)).toEqual([7])
  gpus.set(1, { fault: 700 })
  await expect(ask(second)).rejects.toThrow(
    /^onnx runtime error: GPU 1: an illegal memory access was encountered \(CUDA error 700\)/,
  )
  // The context is gone, whatever the GPU does now.
  gpus.set(1, {})
  await expect(ask(second)).rejects.toThrow('CUDA error 700')
  expect(await ask(first)).toEqual([7])
  expect(failures).toHaveLength(2)
  expect(failures[0]).toMatchObject({
    deviceId: 1,
    model: 'second',
    reason: expect.stringContaining('CUDA error 700') as string,
  })
})
