import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { atOnce } from '../../src/lifecycle/in-turns.js'
import { emptyModelConfig, type ModelConfig } from '../../src/repository/model-config.js'
import { classify } from '../../src/serving/classification.js'
import { configOfDatatype, type Datatype } from '../../src/tensors/element-type.js'
import type { Tensor } from '../../src/tensors/tensor.js'
import type { InferRequest, InferResponse } from '../../src/runtime/infer.js'
import type { IndexEntry, LoadRequest, ModelMetadata, ModelServer } from '../../src/serving/model-server.js'
import { ServingError } from '../../src/tensors/serving-error.js'
import { MemorySettings } from '../../src/serving/settings.js'
import { requestDurations, type ModelStatistics } from '../../src/runtime/statistics.js'
import { TraceFiles } from '../../src/runtime/tracing/trace-files.js'
import { Tracer } from '../../src/runtime/tracing/tracer.js'
import { silentLog } from './silent-log.js'

/** Datatype and shape of the only input `IN`; the output `OUT` is the same bytes. */
export type EchoModel = Readonly<{
  datatype: Datatype
  shape: readonly number[]
  config?: Partial<ModelConfig>
}>

const noDuration = { count: 0, ns: 0 }

/** A model server whose models give back what they get. It keeps what it was asked. */
export class FakeModelServer implements ModelServer {
  readonly name = 'gantry'
  readonly version = '0.0.0'
  readonly extensions = ['classification', 'model_repository', 'statistics']
  readonly sharedMemory = undefined
  /** Traces can be asked for, but none are made. */
  readonly settings = new MemorySettings(
    undefined,
    new Tracer(new TraceFiles(join(tmpdir(), 'no-traces'), 1, silentLog())),
  )
  readonly requests: InferRequest[] = []
  readonly loads: Readonly<{ name: string; request: LoadRequest }>[] = []
  readonly unloads: Readonly<{ name: string; dependents: boolean }>[] = []
  isReady = true
  /** Replaces what models do. */
  onInfer: ((request: InferRequest) => Promise<readonly Tensor[]>) | undefined

  constructor(readonly models: Readonly<Record<string, EchoModel>>) {}

  live(): boolean {
    return true
  }

  ask(): undefined {
    return undefined
  }

  ready(): boolean {
    return this.isReady
  }

  modelReady(name: string, version: string): boolean {
    this.#model(name)
    return version === '' || version === '1'
  }

  metadata(name: string, version: string): ModelMetadata {
    const { datatype, shape } = this.#served(name, version)
    return {
      name,
      versions: ['1'],
      platform: 'onnxruntime_onnx',
      inputs: [{ name: 'IN', datatype, shape }],
      outputs: [{ name: 'OUT', datatype, shape }],
    }
  }

  config(name: string, version: string): ModelConfig {
    const { datatype, shape, config } = this.#served(name, version)
    const dims = shape[0] === -1 ? shape.slice(1) : shape
    const data_type = configOfDatatype(datatype)
    return {
      ...emptyModelConfig,
      name,
      platform: 'onnxruntime_onnx',
      max_batch_size: shape[0] === -1 ? 8 : 0,
      input: [{ name: 'IN', data_type, dims }],
      output: [{ name: 'OUT', data_type, dims }],
      ...config,
    }
  }

  statistics(name: string, version: string): readonly ModelStatistics[] {
    const names = name === '' ? Object.keys(this.models) : [name]
    return names.map((model) => {
      this.#served(model, version)
      const duration = { count: this.requests.length, ns: this.requests.length * 1000 }
      return {
        name: model,
        version: '1',
        lastInferenceMs: 0,
        inferenceCount: this.requests.length,
        executionCount: this.requests.length,
        inference: Object.fromEntries(
          requestDurations.map((part) => [
            part,
            part.startsWith('c') && part.includes('_h') ? noDuration : duration,
          ]),
        ) as ModelStatistics['inference'],
        batches: [],
        memory: [],
      }
    })
  }

  index(readyOnly: boolean): readonly IndexEntry[] {
    const ready = Object.keys(this.models).map(
      (name) => ({ name, version: '1', state: 'READY', reason: '' }) as const,
    )
    return readyOnly ? ready : [...ready, { name: 'never-loaded', version: '', state: '', reason: '' }]
  }

  async load(name: string, request: LoadRequest): Promise<void> {
    this.#model(name)
    this.loads.push({ name, request })
    return Promise.resolve()
  }

  async unload(name: string, dependents: boolean): Promise<void> {
    this.unloads.push({ name, dependents })
    return Promise.resolve()
  }

  async infer(request: InferRequest): Promise<InferResponse> {
    this.requests.push(request)
    const model = this.#served(request.model, request.version)
    const outputs = this.onInfer === undefined ? echo(request, model) : await this.onInfer(request)
    return { model: request.model, version: '1', id: request.id, outputs, parameters: {} }
  }

  metrics(): Promise<string> {
    return Promise.resolve('')
  }

  #model(name: string): EchoModel {
    const model = this.models[name]
    if (model === undefined)
      throw new ServingError('INVALID_ARG', `Request for unknown model: '${name}' is not found`)
    return model
  }

  #served(name: string, version: string): EchoModel {
    const model = this.#model(name)
    if (version !== '' && version !== '1')
      throw new ServingError(
        'UNAVAILABLE',
        `Request for unknown model: '${name}' version ${version} is not found`,
      )
    return model
  }
}

function echo(request: InferRequest, model: EchoModel): readonly Tensor[] {
  const outputs = request.inputs.map((input) => ({ ...input, name: 'OUT' }))
  const classes = request.outputs.find(({ name }) => name === 'OUT')?.classification ?? 0
  return classes === 0
    ? outputs
    : outputs.map((output) => atOnce(classify(output, classes, ['cat', 'dog'], model.shape[0] === -1)))
}
