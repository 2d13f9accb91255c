import ort from 'onnxruntime-node'
import { onTestFinished } from 'vitest'
import { emptyModelConfig, type ModelConfig } from '../../src/inference/model-config.js'
import { openOnnxModel, readModelEntry } from '../../src/inference/model-repository.js'
import type { Backend, BackendContext, OpenedModel } from '../../src/serving/backend.js'
import { configTensors, specsOf } from '../../src/serving/backends/config-tensors.js'
import type { InferRequest } from '../../src/serving/infer.js'
import type { LoadedModel } from '../../src/serving/loaded-model.js'
import type { ModelStatistics } from '../../src/serving/statistics.js'
import type { Tensor, TensorSpec } from '../../src/serving/tensor.js'
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
    close,
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
    close: () => Promise.resolve(),
    ...parts,
  } satisfies LoadedModel & { statistics: () => ModelStatistics }
}

/** A model of a repository, run in this thread. */
export async function onnxModel(repositoryDir: string, name: string): Promise<LoadedModel> {
  const { config, path, version, labels } = openOnnxModel(readModelEntry(repositoryDir, name))
  const session = await ort.InferenceSession.create(path, { intraOpNumThreads: 1 })
  onTestFinished(() => session.release())
  return plainModel({
    name,
    version,
    config,
    platform: 'onnxruntime_onnx',
    inputs: specsOf(config, config.input),
    outputs: specsOf(config, config.output),
    labels: () => labels ?? [],
    infer: async (request) => {
      const feeds = Object.fromEntries(request.inputs.map((tensor) => [tensor.name, feedOf(tensor)]))
      const outputs = await session.run(feeds)
      return request.outputs.map(({ name: output }) => {
        const { dims, data } = outputs[output] as ort.TypedTensor<'float32'>
        return {
          name: output,
          datatype: 'FP32',
          shape: dims,
          data: new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
        }
      })
    },
  })
}

function feedOf({ datatype, data, shape }: Tensor): ort.Tensor {
  const buffer = data.slice().buffer
  return datatype === 'FP32'
    ? new ort.Tensor('float32', new Float32Array(buffer), shape)
    : datatype === 'INT64'
      ? new ort.Tensor('int64', new BigInt64Array(buffer), shape)
      : new ort.Tensor('uint8', new Uint8Array(buffer), shape)
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
  return tensor === undefined ? [] : [...new Float32Array(tensor.data.slice().buffer)]
}

export function spec(
  name: string,
  shape: readonly number[],
  datatype: TensorSpec['datatype'] = 'FP32',
): TensorSpec {
  return { name, datatype, shape }
}
