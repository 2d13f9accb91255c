import type { TrialResult } from './trial.js'
import type { TrialLoad, TrialTask } from './trial-task.js'
import { configured } from './configured.js'
import type { Journal } from './journal.js'
import type { ModelForm } from './model-forms.js'
import {
  type TrialLimits,
  type TrialLoadKind,
  type Objective,
  objectiveOf,
  scoreOf,
  type Worth,
  worthOf,
} from './objective.js'
import { type Configuration, keyOf } from './search-space.js'

/** What all trials have in common. */
export type TrialSetting = Readonly<{
  forms: ReadonlyMap<string, ModelForm>
  objective: Objective
  limits: TrialLimits
  /** Arrivals; without them so many requests are under way as keep the instances busy. */
  gapsMs?: readonly number[]
  /** Requests under way in place of that. */
  concurrency?: readonly number[]
  inputData: string
  shapes: TrialTask['shapes']
  seed: number
  /** Shortest window. */
  windowMs: number
  mostWindows: number
  cores: number
  journal: Journal
  run: (task: TrialTask) => Promise<TrialResult>
}>

/** What a trial came to: what it is worth, or why it cannot be used. */
export type Outcome = Readonly<{ worth: Worth }> | Readonly<{ worth: undefined; reason: string }>

const mostWindowMs = 5_000
/** Answers that a window should have, for its throughput to be known within some percent. */
const answersOfWindow = 20

/** Measures configurations, each once under a name: what a journal knows already is not measured again. */
export class Trials {
  /** Grows with the time that an inference takes. */
  #windowMs: number

  constructor(readonly setting: TrialSetting) {
    this.#windowMs = setting.windowMs
  }

  get loadKind(): TrialLoadKind {
    return this.setting.gapsMs === undefined ? 'concurrency' : 'trace'
  }

  /** Windows are as long as this one needs them. */
  fitWindows({ perSecond }: Pick<Worth, 'perSecond'>): void {
    const wantedMs = (answersOfWindow / perSecond) * 1e3
    this.#windowMs = Math.round(Math.min(mostWindowMs, Math.max(this.setting.windowMs, wantedMs)))
  }

  /**
   * @param name - tells this measurement from others of the same configuration.
   * @param stopBelow - inferences per second under which it is not worth its time.
   */
  async measure(name: string, configuration: Configuration, stopBelow?: number): Promise<Outcome> {
    const { objective, limits, cores } = this.setting
    const early = {
      ...(stopBelow !== undefined && { stopBelow }),
      ...(limits.p99Ms !== undefined && { limitMs: limits.p99Ms }),
    }
    const result = await this.result(name, configuration, this.#load(configuration), early)
    if (!result.ok) return { worth: undefined, reason: result.error.message }
    const worth = worthOf(result, objective, limits, this.loadKind, cores)
    return worth === undefined ? { worth, reason: 'nothing was measured' } : { worth }
  }

  /** The levels of a load that is given. @param early - what ends it before its last level. */
  result(
    name: string,
    configuration: Configuration,
    load: TrialLoad,
    early: Pick<TrialTask, 'stopBelow' | 'limitMs'> = {},
  ): Promise<TrialResult> {
    const { journal, run } = this.setting
    return journal.once(`${name} ${keyOf(configuration)}`, () =>
      run({ ...this.#task(configuration, load), ...early }),
    )
  }

  /** Of the objective alone: `a` over `b`. */
  gain(a: Worth, b: Worth): number {
    const { objective } = this.setting
    return Math.exp(objectiveOf(a, objective) - objectiveOf(b, objective))
  }

  /** What a search goes by: the logarithm of the gain over a reference, less what breaks limits costs. */
  score(worth: Worth, reference: Worth): number {
    const { objective, limits } = this.setting
    return scoreOf(worth, objective, limits) - objectiveOf(reference, objective)
  }

  #load({ instances, maxBatch }: Configuration): TrialLoad {
    const { gapsMs, concurrency, objective } = this.setting
    if (gapsMs !== undefined) return { kind: 'trace', gapsMs }
    const busy = instances * maxBatch
    const levels = objective.kind === 'latency' ? [1] : busy > 1 ? [busy, 2 * busy] : [1, 2]
    return { kind: 'concurrency', levels: concurrency ?? levels }
  }

  #task(configuration: Configuration, load: TrialLoad): TrialTask {
    const { forms, inputData, shapes, seed, mostWindows } = this.setting
    const form = forms.get(configuration.form)
    if (form === undefined) throw new RangeError(`there is no form ${configuration.form}`)
    return {
      name: form.entry,
      versionDir: form.versionDir,
      config: configured(form.config, configuration),
      provider: configuration.provider,
      load,
      inputData,
      shapes,
      seed,
      windowMs: this.#windowMs,
      mostWindows,
    }
  }
}
