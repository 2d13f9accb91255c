import { atMost } from '../lifecycle/delay.js'
import { afterLoad } from './after-load.js'
import { builtInStepNames } from '../ensemble/built-in-steps.js'
import type { ModelConfig } from '../repository/model-config.js'
import { classified } from './classification.js'
import type { InferRequest, InferResponse } from '../runtime/infer.js'
import type {
  IndexEntry,
  LoadRequest,
  ModelMetadata,
  ModelServer,
  ModelServerSettings,
} from './model-server.js'
import type { LoadedModel } from '../runtime/loaded-model.js'
import { ownStepsNamed, sumOfStatistics } from './own-steps.js'
import type { ModelManager } from './repository/model-manager.js'
import { ServingError } from '../tensors/serving-error.js'
import type { ModelStatistics } from '../runtime/statistics.js'
import type { Tensor } from '../tensors/tensor.js'
import { usesSharedMemory, type SharedTensors } from './shared-memory/shared-tensors.js'
import type { SharedRegions } from './shared-memory/shared-regions.js'
import { traced } from '../runtime/tracing/request-trace.js'
import type { Tracer } from '../runtime/tracing/tracer.js'

/** In Triton's order; only what is implemented. */
const extensionsWith = (sharedMemory: boolean): readonly string[] => [
  'classification',
  'sequence',
  'model_repository',
  'model_repository(unload_dependents)',
  'schedule_policy',
  'model_configuration',
  ...(sharedMemory ? ['system_shared_memory'] : []),
  'binary_tensor_data',
  'parameters',
  'statistics',
  'trace',
  'logging',
]

/** Longest that whoever wants to know whether all serve waits for their loads: a probe asks again. */
const toldWithinMs = 5_000

export type LocalModelServerOptions = Readonly<{
  /** What clients are told; default `gantry`. */
  name?: string
  version: string
  manager: ModelManager
  settings: ModelServerSettings
  /** Most that the outputs of a request may have, all together; absent: any. */
  maxResponseBytes?: number
  /** Absent: shared memory is off. */
  sharedTensors?: SharedTensors | undefined
  /** Absent: nothing is traced. */
  tracer?: Tracer
  /** Prometheus text of all that serves. */
  metrics: () => Promise<string>
  toldWithinMs?: number
}>

/** The models of the repositories, in this process. */
export class LocalModelServer implements ModelServer {
  readonly name: string
  readonly version: string
  readonly extensions: readonly string[]
  readonly sharedMemory: SharedRegions | undefined
  readonly settings: ModelServerSettings
  readonly #manager: ModelManager
  readonly #toldWithinMs: number
  #draining = false

  constructor(readonly options: LocalModelServerOptions) {
    this.name = options.name ?? 'gantry'
    this.version = options.version
    this.settings = options.settings
    this.sharedMemory = options.sharedTensors?.regions
    this.extensions = extensionsWith(this.sharedMemory !== undefined)
    this.#manager = options.manager
    this.#toldWithinMs = options.toldWithinMs ?? toldWithinMs
  }

  live(): boolean {
    return true
  }

  ready(): boolean {
    return !this.#draining && this.#manager.ready
  }

  ask(name: string): Promise<void> | undefined {
    const loading = this.#manager.ask(name)
    return name === '' && loading !== undefined ? atMost(this.#toldWithinMs, loading) : loading
  }

  /** From here on nothing is ready; what was begun goes on. */
  refuse(): void {
    this.#draining = true
  }

  modelReady(name: string, version: string): boolean {
    if (this.#draining) throw new ServingError('UNAVAILABLE', 'Server not ready')
    return this.#manager.isReady(name, version)
  }

  metadata(name: string, version: string): ModelMetadata {
    const [model] = this.#described(name, version)
    const versions = this.#manager.record(name)?.serving.map((each) => each.version) ?? []
    return {
      name,
      versions: version === '' && versions.length > 0 ? versions : [model.version],
      platform: model.platform,
      inputs: model.inputs,
      outputs: model.outputs,
    }
  }

  config(name: string, version: string): ModelConfig {
    return this.#described(name, version)[0].config
  }

  statistics(name: string, version: string): readonly ModelStatistics[] {
    if (name !== '' && (version !== '' || this.#manager.record(name) === undefined)) {
      const models = this.#counted(name, () => this.#described(name, version), version)
      const sum = sumOfStatistics(models.map((model) => model.statistics()))
      return sum === undefined ? [] : [sum]
    }
    if (name !== '') this.#counted(name, () => this.#manager.find(name, ''))
    const models = this.#manager
      .records()
      .filter((record) => name === '' || record.name === name)
      .flatMap((record) => record.serving)
    return [...models.map((model) => model.statistics()), ...(name === '' ? this.#ownSteps(models) : [])]
  }

  /**
   * What statistics are asked of. Triton has words of its own for what is not ready.
   *
   * @throws ServingError
   * @see triton-inference-server/core, src/tritonserver.cc, TRITONSERVER_ServerModelStatistics
   */
  #counted<T>(name: string, find: () => T, version = ''): T {
    try {
      return find()
    } catch (error) {
      if (!(error instanceof ServingError) || error.status === 'INVALID_ARG') throw error
      const what =
        version === ''
          ? `requested model '${name}' is not available`
          : `requested model version is not available for model '${name}'`
      const reason = this.#manager.reasonOf(name, version)
      throw new ServingError('INVALID_ARG', reason === '' ? what : `${what}: ${reason}`)
    }
  }

  /** Clients that measure an ensemble look for its steps among all models. */
  #ownSteps(models: readonly LoadedModel[]): readonly ModelStatistics[] {
    return builtInStepNames
      .filter((name) => this.#manager.record(name) === undefined)
      .map((name) => sumOfStatistics(ownStepsNamed(models, name).map((step) => step.statistics())))
      .filter((sum) => sum !== undefined)
  }

  index(readyOnly: boolean): readonly IndexEntry[] {
    return this.#manager.index(readyOnly)
  }

  load(name: string, request: LoadRequest): Promise<void> {
    return this.#manager.load(name, request)
  }

  unload(name: string, unloadDependents: boolean): Promise<void> {
    return this.#manager.unload(name, unloadDependents)
  }

  async infer(asked: InferRequest): Promise<InferResponse> {
    const loading = this.#manager.ask(asked.model)
    const request = loading === undefined ? asked : await afterLoad(asked, loading)
    const { sharedTensors } = this.options
    if (sharedTensors === undefined || !usesSharedMemory(request)) return this.#infer(request)
    // That there is no such model is told before what is wrong with its memory.
    this.#manager.find(request.model, request.version)
    return sharedTensors.around(request, (whole) => this.#infer(whole))
  }

  async #infer(request: InferRequest): Promise<InferResponse> {
    const model = this.#manager.find(request.model, request.version)
    const begun = this.options.tracer?.begin(model.name, model.version, request.id, request.arrival)
    if (begun === undefined) return this.#answer(request, model)
    const { trace, done } = begun
    const { protocol = 'HTTP', startedMs, endedMs } = request.arrival ?? {}
    const [receive, send] = protocol === 'HTTP' ? ['HTTP_RECV', 'HTTP_SEND'] : ['GRPC_WAITREAD', 'GRPC_SEND']
    trace.at(`${receive}_START`, startedMs)
    trace.at(`${receive}_END`, endedMs)
    try {
      const response = await traced(trace, () => this.#answer({ ...request, trace }, model))
      trace.at('INFER_RESPONSE_COMPLETE')
      const onSent = (sendStartedMs: number): void => {
        trace.at(`${send}_START`, sendStartedMs)
        trace.at(`${send}_END`)
        done()
      }
      return { ...response, onSent }
    } catch (error) {
      trace.failed(error)
      done()
      throw error
    }
  }

  async #answer(request: InferRequest, model: LoadedModel): Promise<InferResponse> {
    const outputs = await classified(request, await model.infer(request), model)
    this.#checkSize(outputs, model)
    return { model: model.name, version: model.version, id: request.id, outputs, parameters: {} }
  }

  /** Before any of it is written down: as text it takes many times its size. @throws ServingError */
  #checkSize(outputs: readonly Tensor[], { name }: LoadedModel): void {
    const { maxResponseBytes = Infinity } = this.options
    const bytes = outputs.reduce((sum, { data }) => sum + data.byteLength, 0)
    if (bytes <= maxResponseBytes) return
    throw new ServingError(
      'INVALID_ARG',
      `outputs of model '${name}' have ${bytes} bytes, more than the ${maxResponseBytes} of a response (modelServer.maxResponseBytes)`,
    )
  }

  /** A model of the repository, or what built-in steps of loaded ensembles have that name. @throws ServingError */
  #described(name: string, version: string): readonly [LoadedModel, ...LoadedModel[]] {
    if (this.#manager.record(name) === undefined) {
      const loaded = this.#manager.records().flatMap((record) => record.serving)
      const [first, ...more] = ownStepsNamed(loaded, name)
      if (first !== undefined && (version === '' || version === first.version)) return [first, ...more]
    }
    return [this.#manager.find(name, version)]
  }

  metrics(): Promise<string> {
    return this.options.metrics()
  }
}
