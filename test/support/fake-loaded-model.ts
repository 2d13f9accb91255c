import { emptyModelConfig, type ModelConfig } from '../../src/repository/model-config.js'
import type { BackendContext } from '../../src/runtime/backend.js'
import type { InferRequest } from '../../src/runtime/infer.js'
import type { LoadedModel } from '../../src/runtime/loaded-model.js'
import { StatisticsRecorder } from '../../src/runtime/statistics-recorder.js'
import type { ModelStatistics } from '../../src/runtime/statistics.js'
import type { Tensor } from '../../src/tensors/tensor.js'

/** A model whose requests wait until the test answers them. */
export class FakeLoadedModel implements LoadedModel {
  static readonly request: InferRequest = {
    model: 'a',
    version: '',
    id: '',
    inputs: [],
    outputs: [],
    priority: 0,
    timeoutUs: 0,
    sequence: undefined,
    parameters: {},
    signal: undefined,
  }

  readonly name: string
  readonly version: string
  readonly config: ModelConfig
  readonly platform = 'fake'
  readonly inputs = []
  readonly outputs = []
  readonly recorder: StatisticsRecorder
  closed = false
  /** Requests that came. */
  readonly asked: InferRequest[] = []
  #waiting: { resolve: (outputs: readonly Tensor[]) => void; reject: (error: Error) => void }[] = []

  constructor(
    readonly context: Pick<BackendContext, 'name' | 'version' | 'versionDir'> & { config?: ModelConfig },
    readonly before?: LoadedModel,
  ) {
    this.name = context.name
    this.version = context.version
    this.config = context.config ?? emptyModelConfig
    this.recorder = new StatisticsRecorder(context.name, context.version)
  }

  labels(): readonly string[] {
    return []
  }

  statistics(): ModelStatistics {
    return this.recorder.statistics()
  }

  generation(): Promise<string> {
    return Promise.resolve('g')
  }

  infer(request: InferRequest): Promise<readonly Tensor[]> {
    this.asked.push(request)
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }))
  }

  /** Answers all requests that wait. */
  answer(outputs: readonly Tensor[] = []): void {
    for (const { resolve } of this.#waiting.splice(0)) resolve(outputs)
  }

  /** Fails all requests that wait. */
  fail(error: Error): void {
    for (const { reject } of this.#waiting.splice(0)) reject(error)
  }

  async stop(): Promise<void> {
    this.closed = true
  }
}
