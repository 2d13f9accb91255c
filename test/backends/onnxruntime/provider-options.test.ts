import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { onnxRuntimeBackend } from '../../../src/backends/onnxruntime/onnxruntime-backend.js'
import { openOrtSession } from '../../../src/backends/onnxruntime/ort-session.js'
import { checkOptions, nativeWish, optionFault } from '../../../src/backends/onnxruntime/native-options.js'
import { acceleratedProviders, nativeOptions } from '../../../src/backends/onnxruntime/provider-options.js'
import type { InferenceConfig } from '../../../src/config/inference.js'
import { emptyModelConfig } from '../../../src/repository/model-config.js'
import { parseModelConfig } from '../../../src/repository/model-config-text.js'
import type { LoadedModel } from '../../../src/runtime/loaded-model.js'
import { gpuWorkers, nothingIsMissing, recordOptions } from '../../support/simulated-gpus.js'
import { startDetector } from '../../support/detector-rig.js'
import { contextOf, fp32, requestOf, scheduled, valuesOf } from '../../support/direct-model.js'
import { echoOnnx } from '../../support/model-repository.js'
import { addModel, redDetector } from '../../support/onnx-models.js'
import { tempDir } from '../../support/temp-dir.js'

const config = (text: string) => parseModelConfig(text, 'config.pbtxt')
const accelerator = (name: string, parameters = '') =>
  `optimization { execution_accelerators { gpu_execution_accelerator { name: "${name}" ${parameters} } } }`
const parameter = (key: string, value: string) => `parameters { key: "${key}" value: "${value}" }`

describe('options of execution providers', () => {
  it('are those of the pipeline file, over which the model has its own', () => {
    const inference = { cuda: { use_tf32: false, gpu_mem_limit: 2_000 }, pinnedMemory: true }
    expect(nativeOptions(inference, config(accelerator('cuda', parameter('use_tf32', '1'))))).toEqual({
      providerOptions: { cuda: { use_tf32: '1', gpu_mem_limit: '2000' }, tensorrt: {} },
      pinnedMemory: true,
    })
  })

  it('need the C API only on the provider that they are for', () => {
    const { cuda, none, pinned, shrunk } = {
      cuda: nativeOptions({ cuda: { use_tf32: false } }, emptyModelConfig),
      none: nativeOptions({ cuda: {} }, emptyModelConfig),
      pinned: nativeOptions({ pinnedMemory: true }, emptyModelConfig),
      shrunk: nativeOptions(
        {},
        config('parameters { key: "memory.enable_memory_arena_shrinkage" value { string_value: "gpu:0" } }'),
      ),
    }
    expect([nativeWish(cuda, 'cuda'), nativeWish(cuda, 'cpu'), nativeWish(cuda, 'tensorrt')]).toEqual([
      'use_tf32 of cuda',
      undefined,
      undefined,
    ])
    expect(nativeWish(none, 'cuda')).toBeUndefined()
    expect([nativeWish(pinned, 'cuda'), nativeWish(pinned, 'cpu'), nativeWish(pinned, 'webgpu')]).toEqual([
      'inference.pinnedMemory',
      undefined,
      undefined,
    ])
    expect([nativeWish(shrunk, 'cuda'), nativeWish(shrunk, 'cpu'), nativeWish(shrunk, 'webgpu')]).toEqual([
      'memory.enable_memory_arena_shrinkage',
      undefined,
      undefined,
    ])
  })

  it.each([
    [
      ['cuda', 'cpu'],
      ['tensorrt', 'cuda', 'cpu'],
    ],
    [
      ['webgpu', 'cuda', 'tensorrt', 'cpu'],
      ['webgpu', 'tensorrt', 'cuda', 'cpu'],
    ],
    [
      ['tensorrt', 'cpu'],
      ['tensorrt', 'cpu'],
    ],
    [['cpu'], ['cpu']],
    [
      ['webgpu', 'cpu'],
      ['webgpu', 'cpu'],
    ],
  ] as const)('a model that asks for TensorRT is tried, of %j, on %j', (providers, expected) => {
    expect(acceleratedProviders(providers, config(accelerator('tensorrt')))).toEqual(expected)
    expect(acceleratedProviders(providers, config(accelerator('cuda')))).toEqual(providers)
  })

  it('name a folder where they keep something', () => {
    expect(() => checkOptions({ trt_engine_cache_enable: '1' }, 'tensorrt')).toThrow('no folder is named')
    expect(() => checkOptions({ trt_timing_cache_enable: '1' }, 'tensorrt')).toThrow('no folder is named')
    checkOptions({ trt_engine_cache_enable: '1', trt_engine_cache_path: '/var/engines' }, 'tensorrt')
  })

  it('are told to be the cause where they are', () => {
    const limited = { providerOptions: { cuda: { gpu_mem_limit: '1000' } } }
    const short =
      'bfc_arena.cc:376 AllocateRawInternal Available memory of 12 is smaller than requested bytes of 500'
    expect(optionFault(short, limited, 'cuda')?.message).toBe(
      'gpu_mem_limit of cuda is 1000 bytes, which is under what the model needs: it asked for 500 bytes where 12 were left',
    )
    expect(optionFault(short, {}, 'cuda')).toBeUndefined()
    for (const text of [
      'Unknown provider option: "use_tf32".',
      'Failed to parse provider option "use_tf32": no',
    ])
      expect(optionFault(text, { providerOptions: { cuda: { use_tf32: '0' } } }, 'cuda')?.message).toBe(
        'the installed library does not take use_tf32 of cuda as "0"',
      )
    expect(optionFault('Failed to parse provider option "device_id": GPU', limited, 'cuda')).toBeUndefined()
    const recorded = { providerOptions: { cuda: { enable_cuda_graph: '1' } } }
    for (const text of [
      'This session cannot use the graph capture feature as requested by the user as all compute graph nodes have not been partitioned to the CUDAExecutionProvider',
      'CUDA failure 900: operation not permitted when stream is capturing ; GPU=0',
    ]) {
      expect(optionFault(text, recorded, 'cuda')?.hint).toContain('Leave out enable_cuda_graph')
      expect(optionFault(text, limited, 'cuda')).toBeUndefined()
    }
  })
})

const settings = (cuda: InferenceConfig['cuda']) => ({
  providers: ['cuda', 'cpu'] as const,
  devices: [0],
  intraOpThreads: 1,
  missing: nothingIsMissing,
  workerEntry: gpuWorkers.onnx,
  ...(cuda && { cuda }),
})

/** A model of API clients on a device that is the CPU. */
async function served(text: string, cuda?: InferenceConfig['cuda']): Promise<LoadedModel> {
  const versionDir = join(tempDir(), 'm', '1')
  mkdirSync(versionDir, { recursive: true })
  writeFileSync(join(versionDir, 'model.onnx'), echoOnnx('float32', ['n', 3]))
  const context = contextOf('m', config(`instance_group { kind: KIND_GPU count: 2 } ${text}`), versionDir)
  const { providers, ...others } = settings(cuda)
  const backend = onnxRuntimeBackend({ ...others, providers: [...providers] })
  const model = await scheduled(await backend.open(context), context)
  onTestFinished(() => model.stop(5_000))
  return model
}

async function answers(model: LoadedModel, counts: readonly number[]): Promise<void> {
  for (const count of counts) {
    const values = Array.from({ length: count * 3 }, (_, n) => n + count / 8)
    const [answer] = await model.infer(requestOf([fp32('in0', [count, 3], values)]))
    expect(valuesOf(answer)).toEqual(values)
  }
}

describe('R42: options reach the provider', () => {
  it('from the pipeline file and the configuration of a model of API clients, in every instance and for every size of batch', async () => {
    const told = recordOptions()
    const text = `max_batch_size: 4 ${accelerator('cuda', parameter('cudnn_conv_use_max_workspace', '0'))} parameters { key: "cudnn_conv_algo_search" value { string_value: "1" } }`
    const model = await served(text, { gpu_mem_limit: 1_000_000, use_tf32: false })
    const options = {
      device_id: '0',
      gpu_mem_limit: '1000000',
      use_tf32: '0',
      cudnn_conv_algo_search: 'HEURISTIC',
      cudnn_conv_use_max_workspace: '0',
    }
    expect(told()).toEqual(Array.from({ length: 4 }, () => ({ provider: 'cuda', options })))
    await answers(model, [1, 4, 2, 3])
  })

  it('and a run that is recorded answers each request with its own', async () => {
    const told = recordOptions()
    const model = await served('max_batch_size: 4 optimization { cuda { graphs: true } }')
    expect(told()[0]?.options['enable_cuda_graph']).toBe('1')
    await answers(model, [1, 4, 2, 3, 1, 4])
    await Promise.all([answers(model, [1, 2]), answers(model, [3, 1]), answers(model, [4])])
  })

  it('but a limit under what the model needs keeps it from being loaded, and says what to change', async () => {
    recordOptions(4_096)
    await expect(served('max_batch_size: 4', { gpu_mem_limit: 1_000 })).rejects.toMatchObject({
      code: 'GANTRY_PROVIDER_OPTIONS',
      message: expect.stringContaining('gpu_mem_limit of cuda is 1000 bytes, which is under') as string,
      hint: expect.stringContaining('Raise gpu_mem_limit') as string,
    })
    await answers(await served('max_batch_size: 4', { gpu_mem_limit: 5_000 }), [2])
  })

  it('from both to the detector of cameras, whose frames then lie where the device reads them', async () => {
    const told = recordOptions()
    const dir = tempDir()
    addModel(dir, 'red', {
      onnx: redDetector('float32-nchw'),
      config: `max_batch_size: 4 parameters { key: "arena_extend_strategy" value { string_value: "1" } }`,
    })
    const found = async (inference: Partial<InferenceConfig>) => {
      const rig = await startDetector({
        repositoryDir: dir,
        ensemble: 'red',
        inference: { providers: ['cuda', 'cpu'], instances: 1, maxBatchSize: 4, ...inference },
        workerEntry: gpuWorkers.detector,
      })
      expect(rig.detector.info.provider).toBe('cuda')
      const results = []
      for (let seq = 1; seq <= 4; seq++) {
        const { result } = await rig.detect(rig.frame('cam', seq, [255 - seq * 30, 0, 0]))
        results.push(result?.detections.map(({ score, boxPx }) => [score, boxPx]))
      }
      return results
    }
    const recorded = await found({ cuda: { enable_cuda_graph: true } })
    const plain = await found({ cuda: { use_tf32: false } })
    expect(recorded).toEqual(plain)
    expect(plain.flat().length).toBeGreaterThan(0)
    expect(told()[0]).toEqual({
      provider: 'cuda',
      options: { device_id: '0', enable_cuda_graph: '1', arena_extend_strategy: 'kSameAsRequested' },
    })
  })
})

describe('a model on the CPU', () => {
  it('has its arena shrunk behind each run by the C API, where it asks for that', async () => {
    const text =
      'max_batch_size: 4 parameters { key: "memory.enable_memory_arena_shrinkage" value { string_value: "cpu:0" } }'
    const versionDir = join(tempDir(), 'm', '1')
    mkdirSync(versionDir, { recursive: true })
    writeFileSync(join(versionDir, 'model.onnx'), echoOnnx('float32', ['n', 3]))
    const context = contextOf('m', config(text), versionDir)
    const backend = onnxRuntimeBackend({ providers: ['cpu'], devices: [0], intraOpThreads: 1 })
    const model = await scheduled(await backend.open(context), context)
    onTestFinished(() => model.stop(5_000))
    await answers(model, [1, 3, 4])
  })

  it('is not disturbed by options for a provider that is not there', async () => {
    const path = join(tempDir(), 'model.onnx')
    writeFileSync(path, echoOnnx('float32', ['n', 3]))
    const { session, provider, notes } = await openOrtSession({
      path,
      providers: ['cuda', 'cpu'],
      deviceId: 0,
      intraOpThreads: 1,
      graphOptimization: 'all',
      providerOptions: { cuda: { use_tf32: '0' } },
    })
    onTestFinished(() => session.release())
    expect(provider).toBe('cpu')
    expect(notes.map(({ installed }) => installed)).toEqual([false])
  })
})
