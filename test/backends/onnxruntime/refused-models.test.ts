import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { serveRepository } from '../../support/real-repository.js'
import { startDetector } from '../../support/detector-rig.js'
import { fp32, requestOf, valuesOf } from '../../support/direct-model.js'
import { echoOnnx } from '../../support/model-repository.js'
import { buildOnnx } from '../../support/onnx-builder.js'
import { addModel, redDetector } from '../../support/onnx-models.js'
import { gpuWorkers } from '../../support/simulated-gpus.js'
import { tempDir } from '../../support/temp-dir.js'

/** Every operator is known to nobody. */
const unknownOperator = buildOnnx({
  inputs: [{ name: 'in0', type: 'float32', shape: ['n', 3] }],
  outputs: [{ name: 'out0', type: 'float32', shape: ['n', 3] }],
  nodes: [{ op: 'NoSuchOperator', inputs: ['in0'], outputs: ['out0'] }],
})
const onGpu = 'instance_group { kind: KIND_GPU count: 1 } max_batch_size: 4'

/** A repository of which `sound` runs on the CPU. */
function repository(models: Readonly<Record<string, readonly [onnx: Uint8Array, config: string]>>): string {
  const dir = tempDir()
  const all = {
    ...models,
    sound: [echoOnnx('float32', ['n', 3]), 'instance_group { kind: KIND_CPU }'] as const,
  }
  for (const [name, [onnx, config]] of Object.entries(all)) {
    mkdirSync(join(dir, name, '1'), { recursive: true })
    writeFileSync(join(dir, name, '1', 'model.onnx'), onnx)
    writeFileSync(join(dir, name, 'config.pbtxt'), config)
  }
  return dir
}

function fault(on: 'CARD_OPENS' | 'CARD_RUNS', text: string): void {
  vi.stubEnv(on, text)
  onTestFinished(() => void vi.unstubAllEnvs())
}

/** Why a model is not served, while another one answers. */
async function reasonOf(dir: string, name: string): Promise<string> {
  const server = await serveRepository(dir, { onGpu: true, providers: ['cuda'] })
  const { outputs } = await server.infer(requestOf([fp32('in0', [1, 3], [1, 2, 3])], { model: 'sound' }))
  expect(valuesOf(outputs[0])).toEqual([1, 2, 3])
  const entry = server.index(false).find((each) => each.name === name)
  expect(entry?.state).toBe('UNAVAILABLE')
  return entry?.reason ?? ''
}

describe('R46: a model of clients that its GPU will never run is refused at its load, and others go on', () => {
  it('a file that ONNX Runtime does not read, with the GPU alone', async () => {
    const dir = repository({ bad: [unknownOperator, onGpu] })
    expect(await reasonOf(dir, 'bad')).toMatch(/ONNX Runtime cannot load .*NoSuchOperator/)
  })

  it.each([
    [
      'CARD_RUNS',
      'CUBLAS failure 8: CUBLAS_STATUS_ARCH_MISMATCH ; GPU=0 ; hostname=h ; expr=cublasGemmEx()',
      'GPU 0 lacks what the model computes with, such as float16: use the float32 model there',
    ],
    [
      'CARD_OPENS',
      'CUBLAS failure 8: CUBLAS_STATUS_ARCH_MISMATCH ; GPU=0 ; hostname=h ; expr=cublasGemmEx()',
      'GPU 0 lacks what the model computes with, such as float16: use the float32 model there',
    ],
    [
      'CARD_OPENS',
      'CUDA failure 35: CUDA driver version is insufficient for CUDA runtime version ; GPU=0 ; hostname=h ; expr=cudaSetDevice(0)',
      'is too old for the CUDA that is installed: install a newer one, or the library for an older CUDA',
    ],
    [
      'CARD_OPENS',
      'CUDA failure 101: invalid device ordinal ; GPU=0 ; hostname=h ; expr=cudaSetDevice(info_.device_id)',
      'GPU 3 does not exist; this machine has GPU 0',
    ],
  ] as const)('%s: %s', async (on, text, reason) => {
    fault(on, text)
    vi.stubEnv('CUDA_VISIBLE_DEVICES', '0')
    const group = reason.includes('GPU 3') ? onGpu.replace('count: 1', 'gpus: [3]') : onGpu
    expect(await reasonOf(repository({ bad: [echoOnnx('float32', ['n', 3]), group] }), 'bad')).toContain(
      reason,
    )
  })

  it.each([
    ['0', 'must be positive'],
    ['8', 'must be <= max batch size'],
  ])('a preferred batch of %s', async (size, problem) => {
    const config = `${onGpu} dynamic_batching { preferred_batch_size: [ ${size} ] }`
    const reason = await reasonOf(repository({ bad: [echoOnnx('float32', ['n', 3]), config] }), 'bad')
    expect(reason).toContain(problem)
    expect(reason).toContain('dynamic_batching.preferred_batch_size')
  })
})

describe('a detector of cameras that its GPU will never run is refused at its load', () => {
  const start = (onnx: Uint8Array) => {
    const dir = tempDir()
    addModel(dir, 'red', { onnx })
    return startDetector({
      repositoryDir: dir,
      ensemble: 'red',
      inference: { providers: ['cuda'], instances: 1, maxBatchSize: 4 },
      workerEntry: gpuWorkers.detector,
    })
  }

  it('for want of what it computes with, at its first run', async () => {
    fault('CARD_RUNS', 'CUBLAS failure 8: CUBLAS_STATUS_ARCH_MISMATCH ; GPU=0 ; hostname=h')
    await expect(start(redDetector('uint8-nhwc'))).rejects.toMatchObject({
      code: 'GANTRY_DEVICE_UNFIT',
      message: expect.stringContaining('GPU 0 lacks what the model computes with') as string,
      hint: expect.stringContaining('Use the float32 model there') as string,
    })
  })

  it('but is tried again where the card may be the cause', async () => {
    fault('CARD_OPENS', 'CUDA failure 2: out of memory ; GPU=0 ; hostname=h')
    await expect(start(redDetector('uint8-nhwc'))).rejects.toMatchObject({ code: 'GANTRY_PROVIDER_FAILS' })
  })
})
