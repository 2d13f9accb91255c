import { dirname } from 'node:path'
import type { Log } from '../lifecycle/log.js'
import type { BackendContext, OpenedModel } from '../runtime/backend.js'
import type { BackendRegistry } from './backend-registry.js'
import { createEnsembleModel, type EnsembleHost } from '../ensemble/create-ensemble-model.js'
import type { FindModel } from '../ensemble/step-model.js'
import { loadWarnings } from './load-warnings.js'
import type { LoadedModel } from '../runtime/loaded-model.js'
import type { MemoryAccounts } from '../runtime/memory/memory-accounts.js'
import { recorderOf } from './metrics/recorder-of.js'
import { outputLabels } from '../repository/output-labels.js'
import { CachedModel, type RecordedModel } from './response-cache/cached-model.js'
import type { ResponseCache } from './response-cache/response-cache.js'
import { backendOf } from '../repository/supported-config.js'
import type { RateLimiter } from '../runtime/rate-limit/rate-limiter.js'
import type { BatchingFindings } from '../runtime/batching-findings.js'
import { createScheduledModel } from '../runtime/create-scheduled-model.js'
import type { ScheduledModel } from '../runtime/scheduled-model.js'
import { StatisticsRecorder } from '../runtime/statistics-recorder.js'

export type ModelOpenerOptions = Readonly<{
  backends: BackendRegistry
  /** Steps of ensembles are found here. */
  find: FindModel
  inputSizes?: EnsembleHost['inputSizes']
  /** `undefined` where nothing is kept. */
  cache: ResponseCache | undefined
  /** `undefined` where the rate limiter is off. */
  rateLimiter?: RateLimiter | undefined
  /** Models are charged there for what they take of memory; absent: nowhere. */
  memory?: MemoryAccounts | undefined
  /** What batches were found to save; absent: it is measured at each load. */
  batching?: BatchingFindings | undefined
  /** A run of a model does not end, and takes its thread with it. */
  onHung: (reason: string) => void
  log: Log
}>

/** Makes a version of a model ready to serve: backend, scheduler, and what its configuration puts in front of them. */
export class ModelOpener {
  constructor(readonly options: ModelOpenerOptions) {}

  /**
   * @param before - the same model with other instances: its statistics go on.
   * @throws GantryError
   */
  async open(context: BackendContext, before?: LoadedModel): Promise<LoadedModel> {
    const { backends, cache, rateLimiter, log } = this.options
    const { name, config } = context
    const settings = { keepsAnswers: cache !== undefined, limitsRates: rateLimiter !== undefined }
    for (const warning of loadWarnings(config, settings)) log.warn({ model: name }, warning)
    const backend = backendOf(config)
    if (backend === 'ensemble') return this.#ensemble(context)
    const recorder = (before && recorderOf(before)) ?? this.#recorder(context)
    const opened = await backends.find(backend, name).open(context)
    return this.#cached(await this.#serve(opened, context, recorder, this.options.memory))
  }

  async #ensemble(context: BackendContext): Promise<LoadedModel> {
    const { name, version, config, versionDir } = context
    const { find, log, inputSizes } = this.options
    const labels = outputLabels(config, dirname(versionDir))
    const ensemble = await createEnsembleModel(
      { name, version, config, versionDir, labels },
      {
        find,
        log,
        ...(inputSizes && { inputSizes }),
        serve: (opened, step) => this.#serve(opened, step, this.#recorder(step)),
      },
    )
    return this.#cached(ensemble)
  }

  #serve(
    opened: OpenedModel,
    context: BackendContext,
    statistics: StatisticsRecorder,
    /** Steps that belong to an ensemble have bounds of their own. */
    memory?: MemoryAccounts,
  ): Promise<ScheduledModel> {
    const { log, onHung, rateLimiter, batching } = this.options
    const { name, version, versionDir } = context
    return createScheduledModel(opened, {
      name,
      version,
      modelDir: dirname(versionDir),
      statistics,
      log,
      onHung,
      rateLimiter,
      memory,
      ...(batching && { batching: (config, measure) => batching.of(versionDir, config, measure) }),
    })
  }

  #recorder({ name, version, config }: BackendContext): StatisticsRecorder {
    return new StatisticsRecorder(name, version, config.metric_tags)
  }

  /** Files are read once, at the load, so that no request waits for it. */
  async #cached(model: RecordedModel): Promise<LoadedModel> {
    const { cache } = this.options
    const { response_cache, sequence_batching } = model.config
    if (response_cache?.enable !== true || cache === undefined || sequence_batching !== undefined)
      return model
    await model.generation()
    return new CachedModel(model, cache)
  }
}
