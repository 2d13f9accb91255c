import { requestDurations } from '../../runtime/statistics.js'
import type { GantryError } from '../../errors.js'
import { datatypeNamed } from '../../backends/kserve/kserve-messages.js'
import type { Tensor, TensorSpec } from '../../tensors/tensor.js'
import {
  RemoteModelMissingError,
  ServerAnswerError,
  ServerRefusalError,
  ServerUnreachableError,
} from './client-errors.js'
import type { InferLane, LaneAnswer, LaneOutcome, PreparedRequest } from './infer-lane.js'
import type { ServerTarget } from './server-url.js'

/** A model of a server; without a version the server chooses. */
export type ModelRef = Readonly<{ name: string; version?: string | undefined }>

export type ServerMetadata = Readonly<{ name: string; version: string; extensions: readonly string[] }>

export type ModelFacts = Readonly<{
  name: string
  versions: readonly string[]
  platform: string
  inputs: readonly TensorSpec[]
  outputs: readonly TensorSpec[]
}>

/** What of a model's configuration clients need. */
export type ServedConfig = Readonly<{
  /** 0: the model has no batch dimension. */
  maxBatchSize: number
  /** Models of an ensemble's steps; empty for others. */
  steps: readonly ModelRef[]
}>

/** Kinds of time in the statistics extension. */
export type StatisticPart = (typeof requestDurations)[number]

/** Since the model was loaded. Nanoseconds. */
export type ServedStatistics = Readonly<{
  name: string
  version: string
  inferenceCount: number
  executionCount: number
  parts: Readonly<Record<StatisticPart, Readonly<{ count: number; ns: number }>>>
}>

/** How long a server may take for what is no inference. */
const patienceMs = 15_000

type Described = Readonly<Record<string, unknown>>

/**
 * A client of any server of the KServe v2 protocol.
 *
 * Methods reject with ServerUnreachableError where no server answers, ServerLostError where one is lost, ServerTokenError,
 * RemoteModelMissingError for a model that is not there, ServerRefusalError for what the server refuses and ServerAnswerError for what is
 * no answer of the protocol.
 */
export abstract class KServeClient {
  /** Of {@link infer}, so that its connections are used again. */
  readonly #idle: InferLane[] = []
  readonly #outputs = new Map<string, readonly string[]>()

  constructor(readonly target: ServerTarget) {}

  /** For people. */
  get url(): string {
    return this.target.url
  }

  /** Whether the server, with every model that it should have, takes requests. */
  abstract ready(): Promise<boolean>
  abstract serverMetadata(): Promise<ServerMetadata>
  abstract modelReady(model: ModelRef): Promise<boolean>
  protected abstract describeModel(model: ModelRef): Promise<Described>
  protected abstract describeConfig(model: ModelRef): Promise<Described>
  protected abstract describeStatistics(model: ModelRef): Promise<Described>

  /** Makes a request that can be sent any number of times. @param outputs - names of those wanted; none: all. */
  abstract prepare(model: ModelRef, inputs: readonly Tensor[], outputs?: readonly string[]): PreparedRequest
  /** A way for one request at a time; the caller closes it. */
  abstract lane(): InferLane
  /** The outputs in an answer to {@link prepare}'s request. */
  protected abstract tensorsIn(answer: LaneAnswer, outputs: readonly string[]): readonly Tensor[]
  /** Ends connections; what is under way fails. Idempotent. */
  abstract close(): void

  async modelMetadata(model: ModelRef): Promise<ModelFacts> {
    const described = await this.#ofModel(model, () => this.describeModel(model))
    const { name = model.name, versions = [], platform = '' } = described as Partial<ModelFacts>
    return {
      name,
      versions,
      platform,
      inputs: this.#tensors(described['inputs']),
      outputs: this.#tensors(described['outputs']),
    }
  }

  /** Undefined of a server without the extension. */
  async modelConfig(model: ModelRef): Promise<ServedConfig | undefined> {
    const config = await this.#extension(() => this.describeConfig(model))
    if (config === undefined) return undefined
    const { max_batch_size: size, ensemble_scheduling: ensemble } = config as Readonly<{
      max_batch_size?: number
      ensemble_scheduling?: Readonly<{
        step?: readonly Readonly<{ model_name: string; model_version?: number | string }>[]
      }> | null
    }>
    return {
      maxBatchSize: size ?? 0,
      steps: (ensemble?.step ?? []).map(({ model_name: name, model_version: version }) =>
        version === undefined || Number(version) < 0 ? { name } : { name, version: String(version) },
      ),
    }
  }

  /** Of each version of the model that is loaded. Undefined of a server without the extension. */
  async statistics(model: ModelRef): Promise<readonly ServedStatistics[] | undefined> {
    const described = await this.#extension(() => this.describeStatistics(model))
    const list = described?.['model_stats']
    if (!Array.isArray(list)) return undefined
    return (list as readonly Described[]).map(statisticsOf)
  }

  /**
   * Sends tensors and gives back those that come.
   *
   * @param outputs - names of those wanted; none: all that the model has.
   */
  async infer(
    model: ModelRef,
    inputs: readonly Tensor[],
    outputs: readonly string[] = [],
  ): Promise<readonly Tensor[]> {
    const wanted = outputs.length > 0 ? outputs : await this.#outputsOf(model)
    const lane = this.#idle.pop() ?? this.lane()
    try {
      const { error, answer } = await sent(lane, this.prepare(model, inputs, wanted))
      if (error !== undefined) throw missingOr(this.url, model, error)
      return this.understood(() => this.tensorsIn(answer!, wanted))
    } finally {
      this.#idle.push(lane)
    }
  }

  /** One call that is no inference, on a connection that is closed after it. */
  protected async exchange(lane: InferLane, request: PreparedRequest): Promise<LaneAnswer> {
    const late = new ServerUnreachableError(this.url, `it is silent for ${patienceMs / 1e3} s`)
    let timer: NodeJS.Timeout | undefined
    try {
      const silence = new Promise<never>((_, reject) => (timer = setTimeout(() => reject(late), patienceMs)))
      const { error, answer } = await Promise.race([sent(lane, request), silence])
      if (error !== undefined) throw error
      return answer!
    } finally {
      clearTimeout(timer)
      lane.close()
    }
  }

  /** @throws ServerAnswerError for whatever reading throws */
  protected understood<T>(read: () => T): T {
    try {
      return read()
    } catch (error) {
      throw new ServerAnswerError(this.url, error instanceof Error ? error.message : String(error), error)
    }
  }

  async #outputsOf(model: ModelRef): Promise<readonly string[]> {
    const key = `${model.name}/${model.version ?? ''}`
    const known = this.#outputs.get(key)
    if (known !== undefined) return known
    const names = (await this.modelMetadata(model)).outputs.map(({ name }) => name)
    this.#outputs.set(key, names)
    return names
  }

  async #ofModel<T>(model: ModelRef, ask: () => Promise<T>): Promise<T> {
    try {
      return await ask()
    } catch (error) {
      throw missingOr(this.url, model, error)
    }
  }

  async #extension<T>(ask: () => Promise<T>): Promise<T | undefined> {
    try {
      return await ask()
    } catch (error) {
      // What a server does not have is refused in many ways; a model that is not there has been found out before.
      if (error instanceof ServerRefusalError || error instanceof ServerAnswerError) return undefined
      throw error
    }
  }

  #tensors(list: unknown): readonly TensorSpec[] {
    if (!Array.isArray(list)) throw new ServerAnswerError(this.url, 'a model has no list of tensors')
    return (list as readonly { name: string; datatype: string; shape: readonly (number | string)[] }[]).map(
      ({ name, datatype, shape }) => {
        const known = datatypeNamed(datatype)
        if (known === undefined)
          throw new ServerAnswerError(this.url, `tensor "${name}" has datatype "${datatype}"`)
        return { name, datatype: known, shape: shape.map(Number) }
      },
    )
  }
}

function sent(lane: InferLane, request: PreparedRequest): Promise<LaneOutcome> {
  return new Promise((resolve) => lane.send(request, true, resolve))
}

/** Servers say in many ways that they do not know a model. */
function missingOr(url: string, { name, version }: ModelRef, error: unknown): unknown {
  const isMissing =
    error instanceof ServerRefusalError &&
    (error.status === 404 || /unknown model|not found|no such model|failed to find/i.test(error.message))
  if (!isMissing) return error
  const called = version === undefined ? name : `${name} version ${version}`
  return new RemoteModelMissingError(url, called, (error as GantryError).message.replace(/^.* answers: /, ''))
}

function statisticsOf(described: Described): ServedStatistics {
  const { name, version, inference_count, execution_count, inference_stats } = described as Readonly<{
    name: string
    version: string
    inference_count?: number
    execution_count?: number
    inference_stats?: Readonly<Partial<Record<StatisticPart, { count?: number; ns?: number } | null>>>
  }>
  const part = (key: StatisticPart) => {
    const { count, ns } = inference_stats?.[key] ?? {}
    return { count: Number(count ?? 0), ns: Number(ns ?? 0) }
  }
  return {
    name,
    version,
    inferenceCount: Number(inference_count ?? 0),
    executionCount: Number(execution_count ?? 0),
    parts: Object.fromEntries(requestDurations.map((key) => [key, part(key)])) as ServedStatistics['parts'],
  }
}
