import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import { emptyModelConfig, type ModelConfig } from '../../src/repository/model-config.js'
import { readModel } from '../../src/repository/model-definition.js'
import type { Backend, BackendContext, OpenedModel } from '../../src/runtime/backend.js'
import { configTensors } from '../../src/backends/config-tensors.js'
import { onnxRuntimeBackend } from '../../src/backends/onnxruntime/onnxruntime-backend.js'
import type { InferRequest } from '../../src/runtime/infer.js'
import type { LoadedModel } from '../../src/runtime/loaded-model.js'
import { createScheduledModel } from '../../src/runtime/create-scheduled-model.js'
import type { ScheduledModel } from '../../src/runtime/scheduled-model.js'
import { StatisticsRecorder } from '../../src/runtime/statistics-recorder.js'
import type { ModelStatistics } from '../../src/runtime/statistics.js'
import type { Tensor, TensorSpec } from '../../src/tensors/tensor.js'
import { silentLog } from './silent-log.js'

export function contextOf(name: string, config: Partial<ModelConfig> = {}, versionDir = ''): BackendContext {
  return { name, version: '1', config: { ...emptyModelConfig, ...config }, versionDir, log: silentLog() }
}

/** Opens a model with a backend; it is closed with the test. */
export async function openWith(backend: Backend, context: BackendContext): Promise<LoadedModel> {
  return directModel(await backend.open(context), context)
}

/** A model without a scheduler: every request is a run of its one instance. It ends with the test. */
export async function directModel(
  opened: OpenedModel,
  context: Pick<BackendContext, 'name' | 'version'>,
  labels: readonly string[] = [],
): Promise<LoadedModel> {
  const instance = await opened.start(0)
  const close = async () => {
    await instance.close()
    await opened.close()
  }
  onTestFinished(close)
  return plainModel({
    name: context.name,
    version: context.version,
    config: opened.config,
    platform: opened.platform,
    inputs: opened.inputs,
    outputs: opened.outputs,
    labels: () => labels,
    stop: close,
    infer: async (request) => {
      const { results } = await instance.execute([
        {
          inputs: new Map(request.inputs.map((tensor) => [tensor.name, tensor])),
          outputs: request.outputs.map(({ name }) => name),
          batchSize: 1,
          sequence: request.sequence,
          signal: request.signal,
        },
      ])
      const [result = new Error('no result')] = results
      if (result instanceof Error) throw result
      return result
    },
  })
}

/** A model made of a function. */
export function plainModel(
  parts: Pick<LoadedModel, 'name' | 'inputs' | 'outputs' | 'infer'> & Partial<LoadedModel>,
): LoadedModel {
  return {
    version: '1',
    config: configTensors({ ...emptyModelConfig, name: parts.name }, 'test', parts),
    platform: 'test',
    labels: () => [],
    statistics: () => {
      throw new Error('not counted')
    },
    stop: () => Promise.resolve(),
    generation: () => Promise.resolve(parts.name),
    ...parts,
  } satisfies LoadedModel & { statistics: () => ModelStatistics }
}

/** A model of a repository behind the scheduler, on CPU; it ends with the test. */
export async function scheduledModel(repositoryDir: string, name: string): Promise<LoadedModel> {
  const { config, versions } = readModel(repositoryDir, name)
  const version = String(versions.at(-1))
  const modelDir = join(repositoryDir, name)
  const log = silentLog()
  const backend = onnxRuntimeBackend({ providers: ['cpu'], devices: [0], intraOpThreads: 1 })
  const versionDir = join(modelDir, version)
  const context = { name, version, config, versionDir, log }
  const model = await scheduled(await backend.open(context), context)
  onTestFinished(() => model.stop(5_000))
  return model
}

/** An opened model behind the scheduler. */
export function scheduled(
  opened: OpenedModel,
  { name, version, versionDir, log }: BackendContext,
): Promise<ScheduledModel> {
  const statistics = new StatisticsRecorder(name, version, opened.config.metric_tags)
  const modelDir = dirname(versionDir)
  return createScheduledModel(opened, { name, version, modelDir, statistics, log, onHung: fail })
}

function fail(reason: string): never {
  throw new Error(reason)
}

export function requestOf(inputs: readonly Tensor[], over: Partial<InferRequest> = {}): InferRequest {
  return {
    model: '',
    version: '',
    id: '',
    inputs,
    outputs: [],
    priority: 0,
    timeoutUs: 0,
    sequence: undefined,
    parameters: {},
    signal: undefined,
    ...over,
  }
}

export function fp32(name: string, shape: readonly number[], values: readonly number[]): Tensor {
  return { name, datatype: 'FP32', shape, data: new Uint8Array(Float32Array.from(values).buffer) }
}

export function valuesOf(tensor: Tensor | undefined): number[] {
  return tensor === undefined ? [] : [...new Float32Array(new Uint8Array(tensor.data).buffer)]
}

export function spec(
  name: string,
  shape: readonly number[],
  datatype: TensorSpec['datatype'] = 'FP32',
): TensorSpec {
  return { name, datatype, shape }
}
