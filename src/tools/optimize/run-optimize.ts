import { join } from 'node:path'
import type { InferenceConfig } from '../../config/inference.js'
import { type GantryError, InternalError } from '../../errors.js'
import type { Log } from '../../lifecycle/log.js'
import type { OnnxModel } from '../../repository/onnx-model.js'
import { curvesTo, gainsOf, stepsTo } from './gain-steps.js'
import type { AccuracyMeasure } from './form-accuracy.js'
import type { Journal } from './journal.js'
import { type AccuracyLimits, judgeForms } from './judge-forms.js'
import { type FormsRequest, makeForms, type ModelForm, originalForm } from './model-forms.js'
import type { TrialLimits, Objective, Worth } from './objective.js'
import { nothingKept } from './nothing-kept.js'
import { type OptimizeLimitsError, OptimizeSettingError } from './optimize-errors.js'
import type {
  LoadCurve,
  FormReport,
  OptimizeReport,
  RepeatedConfiguration,
  TriedConfiguration,
} from './optimize-report.js'
import { SearchPace } from './pace.js'
import { measureInTurn } from './repeated.js'
import { measureRoofline, type Roofline } from './roofline.js'
import { searchCandidates } from './search.js'
import {
  type Configuration,
  configurationsOf,
  configurationText,
  keyOf,
  placeOf,
  usualOnes,
  type SearchSpace,
} from './search-space.js'
import { runTrial } from './trial.js'
import { Trials } from './trials.js'

export type OptimizeRequest = Readonly<{
  model: OnnxModel
  /** Without the forms that cannot be made, and those that are not accurate enough. */
  space: Omit<SearchSpace, 'form'>
  forms: Pick<FormsRequest, 'precisions' | 'sizes' | 'frames' | 'python'>
  objective: Objective
  limits: TrialLimits
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
  /** Whether what each step gains, the curves and the roof of the processor are measured as well. */
  explains: boolean
  seed: number
  /** Shortest window of a trial; models that are slow get longer ones. */
  windowMs: number
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
  #forms: readonly FormReport[] = []
  readonly #tried = new Map<string, TriedConfiguration>()
  #usable: readonly ModelForm[] = []
  #space: SearchSpace
  #configurations: readonly Configuration[] = []
  #exhaustive = false
  #finalists: readonly RepeatedConfiguration[] = []
  #best: RepeatedConfiguration | undefined
  #steps: OptimizeReport['steps'] = []
  #curves: readonly LoadCurve[] = []
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
    const judged = await judgeForms(made.forms, { ...this.request, folder: join(work, 'forms') })
    this.#forms = judged.reports
    this.#notes.push(...judged.notes)
    this.#usable = judged.forms
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
  }

  #trials(): Trials {
    const {
      objective,
      limits,
      gapsMs,
      concurrency,
      inputData,
      shapes,
      seed,
      windowMs,
      cores,
      journal,
      signal,
    } = this.request
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
      windowMs,
      mostWindows,
      cores,
      journal,
      run: (task) => runTrial(task, signal),
    })
  }

  async #search(trials: Trials): Promise<void> {
    const { request } = this
    const all = this.#configurations.length
    const most = request.trials ?? Math.max(leastTrials, Math.ceil(all / 10))
    this.#exhaustive = all <= most
    request.progress('baseline')
    const base = await trials.measure('reference 0', this.#baseline)
    if (base.worth === undefined)
      throw new OptimizeSettingError(
        `the model does not run as it is: ${base.reason}`,
        'Look at it with `gantry models inspect`; sizes that it leaves free are named with --shape.',
      )
    trials.fitWindows(base.worth)
    const pace = new SearchPace(Math.min(most, all), this.#exhaustive)
    let reference = base.worth
    const places = this.#configurations.map((each) => placeOf(each, this.#space))
    const first = usualOnes(this.#configurations, request.cores)
    const options = { trials: most, seed: request.seed, first, patience: Math.max(patience, most / 4) }
    await searchCandidates(places, options, async (index) => {
      if (this.#tried.size > 0 && this.#tried.size % referenceEvery === 0) {
        const name = `reference ${this.#tried.size / referenceEvery}`
        reference = (await trials.measure(name, this.#baseline)).worth ?? reference
      }
      return this.#attempt(trials, this.#configurations[index]!, reference, pace)
    })
  }

  /** @returns what the search goes by. */
  async #attempt(
    trials: Trials,
    configuration: Configuration,
    reference: Worth,
    pace: SearchPace,
  ): Promise<number | undefined> {
    const { progress, journal } = this.request
    const best = this.#bestGain()
    const told = best === 0 ? '' : `; best ${best.toFixed(2)} x the baseline`
    progress(
      `${pace.text(this.#tried.size)}: ${configurationText(configuration, this.#space)}${told}${pace.left}`,
    )
    pace.begins(journal.has(`trial ${keyOf(configuration)}`))
    const outcome = await trials.measure('trial', configuration, this.#stopBelow(best, reference))
    const { worth } = outcome
    this.#tried.set(keyOf(configuration), {
      configuration,
      worth,
      ...(worth === undefined && { reason: outcome.reason }),
      gain: worth && trials.gain(worth, reference),
    })
    return worth && trials.score(worth, reference)
  }

  /** Of what keeps the limits; 0 where nothing does. */
  #bestGain(): number {
    const kept = [...this.#tried.values()].filter(({ worth }) => worth?.broken.length === 0)
    return Math.max(0, ...kept.map(({ gain }) => gain ?? 0))
  }

  /** Inferences per second; undefined where it is not throughput that decides. */
  #stopBelow(best: number, { perSecond }: Worth): number | undefined {
    const { objective, gapsMs } = this.request
    if (objective.kind !== 'throughput' || gapsMs !== undefined || best === 0) return undefined
    return hopeless * best * perSecond
  }

  async #chooseBest(trials: Trials): Promise<void> {
    const { rounds, progress } = this.request
    const usable = [...this.#tried.values()].filter(({ worth }) => worth?.broken.length === 0)
    if (usable.length === 0) throw this.#nothingKept(trials, this.#tried.values(), false)
    const top = usable
      .toSorted((a, b) => (b.gain ?? 0) - (a.gain ?? 0))
      .slice(0, finalists)
      .map(({ configuration }) => configuration)
    progress(`the best ${top.length} again, in turn`)
    const measured = await measureInTurn(trials, 'final', [this.#baseline, ...top], rounds)
    const [, ...others] = measured
    this.#finalists = measured
    const kept = others.filter(({ worth }) => worth.broken.length === 0)
    if (kept.length === 0) throw this.#nothingKept(trials, others, true)
    this.#best = kept.reduce((a, b) => (b.gain.median > a.gain.median ? b : a))
    if (this.#best.gain.median < 1)
      this.#notes.push(
        'the baseline is better than all that was tried: leave the model as it is, or search further',
      )
  }

  #nothingKept(
    trials: Trials,
    all: Iterable<Readonly<{ configuration: Configuration; worth: Worth | undefined }>>,
    again: boolean,
  ): OptimizeLimitsError {
    const runs = [...all].flatMap(({ configuration, worth }) => {
      const name = configurationText(configuration, this.#space)
      return worth === undefined ? [] : [{ name, worth, score: trials.score(worth, worth) }]
    })
    return nothingKept(this.#tried.size, runs, again)
  }

  /** Where the gain comes from, and what bounds it. */
  async #explain(trials: Trials): Promise<void> {
    const { rounds, progress, work, cores, signal, journal, model, explains } = this.request
    const best = this.#best?.configuration
    if (best === undefined || !explains) return
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
