import { join } from 'node:path'
import type { InferenceConfig } from '../../config/inference.js'
import { type GantryError, InternalError } from '../../errors.js'
import { nowMs } from '../../lifecycle/clock.js'
import type { Log } from '../../lifecycle/log.js'
import type { OnnxModel } from '../../repository/onnx-model.js'
import type { Detection } from '../../vision/detection.js'
import { curvesTo, gainsOf, stepsTo } from './gain-steps.js'
import { type AccuracyMeasure, accuracyOf, detectionsOf, type FormAccuracy } from './form-accuracy.js'
import type { Journal } from './journal.js'
import { type FormsRequest, makeForms, type ModelForm, originalForm } from './model-forms.js'
import type { Limits, Objective } from './objective.js'
import { OptimizeLimitsError, OptimizeSettingError } from './optimize-errors.js'
import type {
  Curve,
  FormReport,
  OptimizeReport,
  RepeatedConfiguration,
  TriedConfiguration,
} from './optimize-report.js'
import { measureInTurn } from './repeated.js'
import { measureRoofline, type Roofline } from './roofline.js'
import { searchCandidates } from './search.js'
import {
  type Configuration,
  configurationsOf,
  configurationText,
  keyOf,
  placeOf,
  type SearchSpace,
} from './search-space.js'
import { runTrial } from './trial.js'
import { Trials } from './trials.js'

/** What a form must keep of its accuracy, 0..1. */
export type AccuracyLimits = Readonly<{ map?: number; mapDrop?: number; agreement?: number }>

export type OptimizeRequest = Readonly<{
  model: OnnxModel
  /** Without the forms that cannot be made, and those that are not accurate enough. */
  space: Omit<SearchSpace, 'form'>
  forms: Pick<FormsRequest, 'precisions' | 'sizes' | 'frames' | 'python'>
  objective: Objective
  limits: Limits
  accuracy: Readonly<{ measure: AccuracyMeasure | undefined; limits: AccuracyLimits }>
  /** Gaps in milliseconds between the arrivals of a trace. */
  gapsMs?: readonly number[]
  concurrency: readonly number[] | undefined
  inputData: string
  shapes: Readonly<Record<string, readonly number[]>>
  /** Most trials of the search; undefined: a tenth of all configurations, 30 at least. */
  trials: number | undefined
  /** Turns in which the best are measured again. */
  rounds: number
  seed: number
  cores: number
  inference: InferenceConfig
  /** Folder for all that is kept between two parts of a run. */
  work: string
  journal: Journal
  env: NodeJS.ProcessEnv
  quiet: boolean
  log: Log
  signal: AbortSignal
  /** Told what is being done, a line. */
  say(line: string): void
  /** How far it is. */
  progress(text: string): void
}>

/** What a search found; cut short where something ended it. */
export type OptimizeOutcome = Readonly<{
  found: Pick<
    OptimizeReport,
    | 'forms'
    | 'configurations'
    | 'exhaustive'
    | 'baseline'
    | 'tried'
    | 'finalists'
    | 'best'
    | 'steps'
    | 'curves'
    | 'roofline'
    | 'notes'
    | 'space'
    | 'interrupted'
  >
  /** Of the best. */
  form: ModelForm | undefined
  /** What ended it before its time, beside the signal. */
  failure: GantryError | undefined
}>

/** The best of a search that are measured again. */
const finalists = 4
/** Trials between two of the baseline, by which others are compared over time. */
const referenceEvery = 8
const leastTrials = 30
const mostWindows = 6
const curveLevels = [1, 2, 4, 8, 16]
/** Of the search, without a better one, after which it ends. */
const patience = 15
/** So far behind the best a trial is not worth its time. */
const hopeless = 0.5

/** Searches how a model is run best on this machine. */
export async function runOptimize(request: OptimizeRequest): Promise<OptimizeOutcome> {
  return new Search(request).run()
}

class Search {
  readonly #notes: string[] = []
  readonly #forms: FormReport[] = []
  readonly #tried = new Map<string, TriedConfiguration>()
  #usable: readonly ModelForm[] = []
  #space: SearchSpace
  #configurations: readonly Configuration[] = []
  #exhaustive = false
  #finalists: readonly RepeatedConfiguration[] = []
  #best: RepeatedConfiguration | undefined
  #steps: OptimizeReport['steps'] = []
  #curves: readonly Curve[] = []
  #roofline: Roofline | undefined
  readonly #baseline: Configuration

  constructor(readonly request: OptimizeRequest) {
    this.#space = { form: [originalForm], ...request.space }
    this.#baseline = plainBaseline(request.cores)
  }

  async run(): Promise<OptimizeOutcome> {
    let failure: GantryError | undefined
    try {
      await this.#run()
    } catch (error) {
      if (!this.request.signal.aborted) {
        if (this.#tried.size === 0) throw error
        failure = error as GantryError
      }
    }
    return {
      found: {
        forms: this.#forms,
        configurations: this.#configurations.length,
        exhaustive: this.#exhaustive,
        baseline: this.#baseline,
        space: this.#space,
        tried: [...this.#tried.values()],
        finalists: this.#finalists,
        ...(this.#best && { best: this.#best }),
        steps: this.#steps,
        curves: this.#curves,
        ...(this.#roofline && { roofline: this.#roofline }),
        notes: this.#notes,
        interrupted: this.request.signal.aborted,
      },
      form: this.#usable.find(({ name }) => name === this.#best?.configuration.form),
      failure,
    }
  }

  async #run(): Promise<void> {
    await this.#makeForms()
    const trials = this.#trials()
    await this.#search(trials)
    await this.#chooseBest(trials)
    await this.#explain(trials)
  }

  async #makeForms(): Promise<void> {
    const { model, forms, space, work, env, quiet, say, signal } = this.request
    const made = await makeForms(model, {
      ...forms,
      batches: Math.max(...space.maxBatch) > 1,
      maxBatchSize: Math.max(...space.maxBatch),
      folder: join(work, 'forms'),
      env,
      quiet,
      say,
      signal,
    })
    this.#notes.push(...made.notes)
    this.#usable = await this.#accurate(made.forms)
    const free = this.#usable.filter(({ config }) => (config.max_batch_size ?? 0) > 0)
    if (free.length === 0 && Math.max(...space.maxBatch) > 1)
      this.#notes.push('batches are left out: the model takes one at a time')
    // With a form that takes batches, the one that does not is no other way to run it.
    const some = free.length > 0 ? free : this.#usable
    this.#space = {
      ...space,
      form: some.map(({ name }) => name),
      ...(free.length === 0 && { maxBatch: [1], queueDelayUs: [0] }),
    }
    const most = Math.max(...some.map(({ config }) => config.max_batch_size ?? 0))
    if (most > 0) this.#space = { ...this.#space, maxBatch: atMost(this.#space.maxBatch, most) }
    this.#configurations = configurationsOf(this.#space, this.request.cores)
    if (this.#configurations.length === 0)
      throw new OptimizeSettingError(
        'no configuration is left to be tried',
        'Name more values: --threads, --instances, --batches, or allow less accuracy.',
      )
  }

  /** Those that are accurate enough. */
  async #accurate(forms: readonly ModelForm[]): Promise<readonly ModelForm[]> {
    const { accuracy, journal, inference, log, signal, progress, work } = this.request
    const { measure } = accuracy
    if (measure === undefined) {
      this.#forms.push(...forms.map(({ name, fileBytes }) => ({ name, fileBytes })))
      return forms
    }
    const setting = { folder: join(work, 'forms'), inference, log, signal }
    let expected: readonly (readonly Detection[])[] | undefined
    let original: FormAccuracy | undefined
    const kept: ModelForm[] = []
    for (const form of forms) {
      const { name, fileBytes } = form
      const all = measure.kind === 'map' ? measure.set.pictures.length : measure.pictures.length
      const onPicture = (done: number) => progress(`accuracy of ${name}: ${done} of ${all} pictures`)
      const own = await journal.once(`accuracy ${name}`, async () => {
        if (measure.kind === 'agreement' && form !== forms[0])
          expected ??= await detectionsOf(forms[0]!, measure, { ...setting, onPicture })
        return accuracyOf(form, measure, { ...setting, onPicture }, expected)
      })
      original ??= own
      const leftOut = form === forms[0] ? undefined : this.#tooFar(own, original)
      this.#forms.push({ name, fileBytes, accuracy: own, ...(leftOut !== undefined && { leftOut }) })
      if (leftOut === undefined) kept.push(form)
      else this.#notes.push(`${name} is left out: ${leftOut}`)
    }
    return kept
  }

  #tooFar({ kind, value }: FormAccuracy, original: FormAccuracy): string | undefined {
    const { map, mapDrop, agreement } = this.request.accuracy.limits
    if (kind === 'agreement')
      return value < (agreement ?? 0)
        ? `it agrees with the model by ${value.toFixed(3)} of ${agreement}`
        : undefined
    if (value < (map ?? 0)) return `its mAP is ${value.toFixed(4)} of ${map}`
    const lost = original.value - value
    return lost > (mapDrop ?? 1) ? `it loses ${lost.toFixed(4)} of mAP, ${mapDrop} is allowed` : undefined
  }

  #trials(): Trials {
    const { objective, limits, gapsMs, concurrency, inputData, shapes, seed, cores, journal, signal } =
      this.request
    const forms = new Map(this.#usable.map((form) => [form.name, form]))
    const original = this.#usable[0]
    if (original === undefined) throw new InternalError('the model as it is was left out')
    forms.set(originalForm, original)
    return new Trials({
      forms,
      objective,
      limits,
      ...(gapsMs && { gapsMs }),
      ...(concurrency && { concurrency }),
      inputData,
      shapes,
      seed,
      mostWindows,
      cores,
      journal,
      run: (task) => runTrial(task, signal),
    })
  }

  async #search(trials: Trials): Promise<void> {
    const { request } = this
    const { progress } = request
    const places = this.#configurations.map((each) => placeOf(each, this.#space))
    const all = this.#configurations.length
    const most = request.trials ?? Math.max(leastTrials, Math.ceil(all / 10))
    this.#exhaustive = all <= most
    const planned = Math.min(most, all)
    progress('baseline')
    const first = await trials.measure('reference 0', this.#baseline)
    if (first.worth === undefined)
      throw new OptimizeSettingError(
        `the model does not run as it is: ${first.reason}`,
        'Look at it with `gantry models inspect`; sizes that it leaves free are named with --shape.',
      )
    trials.fitWindows(first.worth)
    let reference = trials.score(first.worth)
    let count = 0
    let best = -Infinity
    const beganMs = nowMs()
    let fresh = 0
    await searchCandidates({ places }, { trials: most, seed: request.seed, patience }, async (index) => {
      const configuration = this.#configurations[index]!
      if (count > 0 && count % referenceEvery === 0) {
        const again = await trials.measure(`reference ${count / referenceEvery}`, this.#baseline)
        if (again.worth !== undefined) reference = trials.score(again.worth)
      }
      const left = timeLeft(beganMs, fresh, planned - count)
      progress(
        `trial ${count + 1} of ${this.#exhaustive ? planned : `at most ${planned}`}: ${configurationText(configuration, this.#space)}${this.#bestText(best)}${left}`,
      )
      const isKnown = request.journal.has(`trial ${keyOf(configuration)}`)
      const stopBelow = this.#stopBelow(best, reference)
      const outcome = await trials.measure('trial', configuration, stopBelow)
      count += 1
      if (!isKnown) fresh += 1
      const gain = outcome.worth === undefined ? undefined : trials.score(outcome.worth) - reference
      this.#tried.set(keyOf(configuration), {
        configuration,
        worth: outcome.worth,
        ...(outcome.worth === undefined && { reason: outcome.reason }),
        gain: gain === undefined ? undefined : Math.exp(gain),
      })
      if (gain !== undefined && outcome.worth?.broken.length === 0) best = Math.max(best, gain)
      return gain
    })
  }

  #bestText(best: number): string {
    return best === -Infinity ? '' : `; best ${Math.exp(best).toFixed(2)} x the baseline`
  }

  /** Inferences per second; undefined where it is not throughput that decides. */
  #stopBelow(best: number, reference: number): number | undefined {
    const { objective, gapsMs } = this.request
    if (objective.kind !== 'throughput' || gapsMs !== undefined || best === -Infinity) return undefined
    return hopeless * Math.exp(best + reference)
  }

  async #chooseBest(trials: Trials): Promise<void> {
    const { rounds, progress } = this.request
    const usable = [...this.#tried.values()].filter(({ worth }) => worth?.broken.length === 0)
    if (usable.length === 0) throw this.#nothingKept()
    const top = usable
      .toSorted((a, b) => (b.gain ?? 0) - (a.gain ?? 0))
      .slice(0, finalists)
      .map(({ configuration }) => configuration)
    progress(`the best ${top.length} again, in turn`)
    const measured = await measureInTurn(trials, 'final', [this.#baseline, ...top], rounds)
    const [, ...others] = measured
    this.#finalists = measured
    const kept = others.filter(({ worth }) => worth.broken.length === 0)
    if (kept.length === 0) throw this.#nothingKept()
    this.#best = kept.reduce((a, b) => (b.gain.median > a.gain.median ? b : a))
  }

  #nothingKept(): OptimizeLimitsError {
    const nearest = [...this.#tried.values()]
      .filter(({ worth }) => worth !== undefined)
      .toSorted((a, b) => (b.gain ?? 0) - (a.gain ?? 0))[0]
    const told =
      nearest?.worth === undefined
        ? 'none of them runs'
        : `the nearest, ${configurationText(nearest.configuration, this.#space)}, has ${nearest.worth.broken.join(', ')}`
    return new OptimizeLimitsError(`none of ${this.#tried.size} configurations keeps the limits: ${told}`)
  }

  /** Where the gain comes from, and what bounds it. */
  async #explain(trials: Trials): Promise<void> {
    const { rounds, progress, work, cores, signal, journal, model } = this.request
    const best = this.#best?.configuration
    if (best === undefined) return
    progress('what each step gains')
    const steps = stepsTo(this.#baseline, best)
    const measured = await measureInTurn(
      trials,
      'step',
      steps.map(({ configuration }) => configuration),
      rounds,
    )
    this.#steps = gainsOf(steps, measured)
    for (const { name, configuration } of curvesTo(this.#baseline, best)) {
      progress(`curve ${name}`)
      const load = { kind: 'concurrency', levels: curveLevels } as const
      const result = await trials.result('curve', configuration, load)
      if (result.ok) this.#curves = [...this.#curves, { name, configuration, levels: result.levels }]
    }
    progress('what this processor can do at most')
    this.#roofline = await journal.once('roofline', () =>
      measureRoofline(model, join(work, 'roofline'), cores, (task) => runTrial(task, signal)),
    )
  }
}

/** What ONNX Runtime does by itself: one session on all cores that waits busily, a request at a time. */
export function plainBaseline(cores: number): Configuration {
  return {
    form: originalForm,
    provider: 'cpu',
    intraOpThreads: cores,
    spinning: true,
    graph: 'all',
    arena: true,
    parallel: false,
    instances: 1,
    maxBatch: 1,
    queueDelayUs: 0,
  }
}

function atMost(values: readonly number[], most: number): readonly number[] {
  const some = values.filter((value) => value <= most)
  return some.length > 0 ? some : [1]
}

/** By what the trials of this run took. */
function timeLeft(beganMs: number, done: number, left: number): string {
  if (done < 2) return ''
  const minutes = (((nowMs() - beganMs) / done) * left) / 60_000
  return minutes < 1 ? '; less than a minute left' : `; about ${Math.ceil(minutes)} min left`
}
