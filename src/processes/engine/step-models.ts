import { dirname } from 'node:path'
import { ProviderUnavailableError } from '../../backends/onnxruntime/provider-notes.js'
import type { ProviderUse } from '../../backends/onnxruntime/provider-uses.js'
import type { EnsembleHost } from '../../ensemble/create-ensemble-model.js'
import type { StepModels } from '../../ensemble/open-camera-graph.js'
import { backoffMs } from '../../lifecycle/backoff.js'
import { nowMs } from '../../lifecycle/clock.js'
import { delay } from '../../lifecycle/delay.js'
import { ModelConfigError } from '../../repository/errors.js'
import { type CountedStatistics, counted } from '../../runtime/counted-statistics.js'
import { createScheduledModel } from '../../runtime/create-scheduled-model.js'
import { StatisticsRecorder } from '../../runtime/statistics-recorder.js'
import { recorderOf } from '../../serving/metrics/recorder-of.js'
import type { ModelManager } from '../../serving/repository/model-manager.js'
import type { EngineStepsOptions } from './step-manager.js'

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
    const { onHung, log } = this.options
    // It brings all that serves the models of API clients, and most cameras have no such steps.
    const { createStepManager } = await import('./step-manager.js')
    const { manager, find } = createStepManager(this.options, names)
    this.#manager = manager
    await manager.start()
    for (const name of names) checkServes(manager, name, this.options.uses?.unused)
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

/** @throws ProviderUnavailableError where a provider fails, else ModelConfigError, with the reason why a model does not serve */
function checkServes(manager: ModelManager, name: string, failing: readonly ProviderUse[] = []): void {
  const record = manager.record(name)
  if (record !== undefined && record.serving.length > 0) return
  const failures = failing.filter(({ model }) => model === name)
  if (failures.length > 0)
    throw new ProviderUnavailableError(
      failures.map(({ provider, failure }) => ({ provider, reason: `${name}: ${failure}`, installed: true })),
    )
  const reason = record?.versions.map((version) => version.reason).find((text) => text !== '')
  throw new ModelConfigError(
    `model "${name}", which a step of the cameras runs, cannot be loaded: ${reason ?? 'it is not in the repository'}`,
    'Correct it, or take the step out of the ensemble.',
  )
}
