import { dirname, join } from 'node:path'
import { BackendRegistry } from '../../serving/backend-registry.js'
import { JsBackend } from '../../backends/js/js-backend.js'
import { KserveBackend } from '../../backends/kserve/kserve-backend.js'
import { onnxRuntimeBackend } from '../../backends/onnxruntime/onnxruntime-backend.js'
import type { InferenceConfig } from '../../config/inference.js'
import { isBuiltInStep } from '../../ensemble/built-in-steps.js'
import type { EnsembleHost } from '../../ensemble/create-ensemble-model.js'
import type { StepModels } from '../../ensemble/open-camera-graph.js'
import { backoffMs } from '../../lifecycle/backoff.js'
import { nowMs } from '../../lifecycle/clock.js'
import { delay } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import { ModelConfigError } from '../../repository/errors.js'
import { type CountedStatistics, counted } from '../../runtime/counted-statistics.js'
import { createScheduledModel } from '../../runtime/create-scheduled-model.js'
import { StatisticsRecorder } from '../../runtime/statistics-recorder.js'
import { recorderOf } from '../../serving/metrics/recorder-of.js'
import { ModelOpener } from '../../serving/model-opener.js'
import { ModelManager } from '../../serving/repository/model-manager.js'

export type EngineStepsOptions = Readonly<{
  repositories: readonly string[]
  inference: InferenceConfig
  allowJsBackends: boolean
  /** A run of a step does not end, and only the end of the process ends it. */
  onHung: (reason: string) => void
  log: Log
}>

const drainMs = 1_000
const reloadBackoff = { baseMs: 1_000, capMs: 15_000 }
/** A model that has served so long since it was loaded again begins anew with short waits. */
const provenMs = 60_000

/** The models that steps of cameras run, in the engine: loaded and run as those of API clients are. */
export class EngineSteps implements StepModels {
  #manager: ModelManager | undefined
  #closed: Promise<void> | undefined
  readonly #closing = new AbortController()
  /** How often a model was given up, and when it was last loaded again. */
  readonly #givenUp = new Map<string, { times: number; loadedMs: number }>()

  constructor(readonly options: EngineStepsOptions) {}

  async load(names: readonly string[]): Promise<EnsembleHost> {
    const { repositories, inference, allowJsBackends, onHung, log } = this.options
    const find: EnsembleHost['find'] = (name, version) => {
      const record = manager.record(name)
      return version > 0 ? record?.model(version) : record?.serving.at(-1)
    }
    const opener = new ModelOpener({
      backends: new BackendRegistry([
        onnxRuntimeBackend(inference),
        new KserveBackend(),
        new JsBackend(allowJsBackends),
      ]),
      find,
      cache: undefined,
      onHung,
      log,
    })
    const manager = new ModelManager({
      repositories,
      control: 'explicit',
      load: names,
      isBuiltIn: isBuiltInStep,
      open: (context, before) => opener.open(context, before),
      // What cameras run is trusted: it is named by the pipeline file.
      probe: () => Promise.resolve(),
      uploadDir: join(repositories[0] ?? '', '.none'),
      drainMs,
      log,
    })
    this.#manager = manager
    await manager.start()
    for (const name of names) checkServes(manager, name)
    for (const { name } of manager.records()) this.#watch(manager, name)
    return {
      find,
      log,
      serve: (opened, { name, version, versionDir, config }) =>
        createScheduledModel(opened, {
          name,
          version,
          modelDir: dirname(versionDir),
          statistics: new StatisticsRecorder(name, version, config.metric_tags),
          log,
          onHung,
        }),
    }
  }

  /** What the models did since they were loaded, none before that. */
  statistics(): readonly CountedStatistics[] {
    const serving = this.#manager?.records().flatMap((record) => record.serving) ?? []
    return serving.map(recorderOf).flatMap((recorder) => (recorder === undefined ? [] : [counted(recorder)]))
  }

  stop(drainMs: number): Promise<void> {
    this.#closing.abort()
    this.#closed ??= this.#manager?.stop(drainMs) ?? Promise.resolve()
    return this.#closed
  }

  /** Nobody loads a camera's models by request: one that is given up comes back by itself, as a detector does. */
  #watch(manager: ModelManager, name: string): void {
    for (const { broken } of manager.record(name)?.serving ?? [])
      void broken?.then((reason) => this.#bringBack(manager, name, reason))
  }

  /** Ever more slowly while it is given up or cannot be loaded. Never rejects. */
  async #bringBack(manager: ModelManager, name: string, givenUpFor: string): Promise<void> {
    const { log } = this.options
    const state = this.#givenUp.get(name) ?? { times: 0, loadedMs: nowMs() }
    this.#givenUp.set(name, state)
    if (nowMs() - state.loadedMs > provenMs) state.times = 0
    for (let reason = givenUpFor; ;) {
      const waitMs = backoffMs(state.times, reloadBackoff)
      state.times += 1
      log.warn(
        { model: name, times: state.times, waitMs: Math.round(waitMs), reason },
        'model of a step does not serve, loading it again',
      )
      if (!(await delay(waitMs, this.#closing.signal))) return
      try {
        await manager.load(name, { config: undefined, files: new Map() })
        state.loadedMs = nowMs()
        log.info({ model: name }, 'model of a step serves again')
        this.#watch(manager, name)
        return
      } catch (error) {
        if (this.#closing.signal.aborted) return
        reason = error instanceof Error ? error.message : String(error)
      }
    }
  }
}

/** @throws ModelConfigError with the reason why a model does not serve */
function checkServes(manager: ModelManager, name: string): void {
  const record = manager.record(name)
  if (record !== undefined && record.serving.length > 0) return
  const reason = record?.versions.map((version) => version.reason).find((text) => text !== '')
  throw new ModelConfigError(
    `model "${name}", which a step of the cameras runs, cannot be loaded: ${reason ?? 'it is not in the repository'}`,
    'Correct it, or take the step out of the ensemble.',
  )
}
