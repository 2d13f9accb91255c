import { ensembleOutcomes, type EnsembleOutcome, type EnsembleView } from '../../api/gantry.js'
import { EnsembleBusyError } from '../../cameras/engine-errors.js'
import type { EngineResult } from '../../cameras/engine-report.js'
import type { EnsembleChangeRequest } from '../../config/ensemble-change.js'
import type { DetectorInfo } from '../../detector/camera-detector.js'
import { wallMs } from '../../lifecycle/clock.js'
import { delay, unlessAborted } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import type { ServiceMetrics } from '../../metrics/service-metrics.js'
import { joinedAgreement } from '../../vision/agreement.js'
import type { ComparedFrames } from '../engine/model-comparison.js'
import type { EngineProcess } from '../engine/engine-process.js'
import type { ModelQuestion } from '../engine/protocol.js'
import { latencyFault, type P99Pair, TrialLatency, worstOf } from './trial-latency.js'

/** Longest that an engine may load the ensemble, as at its start. */
const openAtMostMs = 120_000
/** Longest that cameras may take to go over. One that does not connect is waited for 20 s, and four go at once. */
const goOverAtMostMs = 600_000
/** Longest for an answer beyond the time that was asked for. */
const answerWithinMs = 10_000
/** Of a trial, in which decoders begin and caches fill: no more than a tenth of it. */
const settlesInMs = 2_000
/** Frames that are compared, of all engines. */
const mostFrames = 50

/** An engine as far as a change asks it. */
export type ChangedEngine = Pick<EngineProcess, 'ready' | 'ask'> & Readonly<{ setup: { index: number } }>

export type EnsembleChangeHost = Readonly<{
  configured: string
  /** Those that have cameras, or could have. */
  engines: () => readonly ChangedEngine[]
  /** For an ensemble, that of it first. */
  repositoriesFor: (name: string) => readonly string[]
  /** @throws GantryError why the files of the repositories cannot be used so. */
  check: (name: string) => Promise<void>
  /** p99 of capture to publish of the cameras that are live, and have results enough to tell. */
  p99Ms: () => ReadonlyMap<string, number>
  /** What it is of so far is over: from now on results of the ensemble in force count alone. */
  forgetP99: () => void
  /** Another detector analyses the cameras of an engine, on trial or as the one in force. */
  uses: (index: number, detector: DetectorInfo, isInForce: boolean) => void
  /** It is in force: engines start with it from now on. */
  keep: (model: Readonly<{ ensemble: string; repositories: readonly string[] }>) => void
  metrics: Pick<ServiceMetrics, 'ensembleChanges'>
  log: Log
  /** Tests have one of their own. */
  wait?: (forMs: number, signal: AbortSignal) => Promise<unknown>
}>

type Change = {
  readonly request: EnsembleChangeRequest
  readonly since: string
  readonly cut: AbortController
  state: Exclude<EnsembleView['state'], 'steady'>
  agreement: EnsembleOutcome['agreement']
  comparedFrames: number
  /** Of the comparison, then of the trial. */
  latency: TrialLatency | undefined
  /** p99 of before the change. */
  readonly beforeMs: ReadonlyMap<string, number>
  p99Ms: P99Pair
}

/** Why a change did not go on. */
class Stopped extends Error {}

/**
 * Gives the cameras another ensemble, on trial. The engines load it beside the one that works, compare the two on copies of frames, and let
 * the cameras run on it for a while; then it is kept, or taken back where it agrees too little, is slower or fails. Until it is kept the one
 * before is in force: an engine that ends comes up with it, and that ends the trial.
 */
export class EnsembleChange {
  #name: string
  #change: Change | undefined
  #last: EnsembleOutcome | null = null
  #stopped = false

  constructor(readonly host: EnsembleChangeHost) {
    this.#name = host.configured
    for (const outcome of ensembleOutcomes) host.metrics.ensembleChanges.inc({ outcome }, 0)
  }

  get view(): EnsembleView {
    const change = this.#change
    return {
      name: this.#name,
      configured: this.host.configured,
      state: change?.state ?? 'steady',
      to: change ? { name: change.request.name, since: change.since } : null,
      last: this.#last,
    }
  }

  /** Whether one is under way. */
  get isUnderWay(): boolean {
    return this.#change !== undefined
  }

  /** @throws EnsembleBusyError; what `check` throws. Then nothing has changed. */
  async begin(request: EnsembleChangeRequest): Promise<EnsembleView> {
    this.#checkFree()
    await this.host.check(request.name)
    // Another one may have begun meanwhile.
    const engines = this.#checkFree()
    const beforeMs = this.host.p99Ms()
    const change: Change = {
      request,
      since: new Date(wallMs()).toISOString(),
      cut: new AbortController(),
      state: 'loading',
      agreement: null,
      comparedFrames: 0,
      latency: undefined,
      beforeMs,
      p99Ms: worstOf(beforeMs, new Map()),
    }
    this.#change = change
    void this.#run(change, engines)
    return this.view
  }

  /** A result was published, so long after its frame arrived. */
  published(result: Pick<EngineResult, 'cameraId' | 'arrivedMs'>, latencyMs: number): void {
    this.#change?.latency?.add(result, latencyMs)
  }

  /** An engine ended or came up, or runs of the ensemble fail: what is under way ends. */
  interrupt(reason: string): void {
    this.#change?.cut.abort(new Stopped(reason))
  }

  /** None is begun any more, and the one that is under way is left as it is: the engines end. */
  stop(): void {
    this.#stopped = true
    this.interrupt('the service is stopping')
  }

  #checkFree(): readonly ChangedEngine[] {
    if (this.#stopped) throw new EnsembleBusyError('the service is stopping', 'Ask it once it runs again.')
    if (this.#change !== undefined)
      throw new EnsembleBusyError(`"${this.#change.request.name}" is being tried`)
    const engines = this.host.engines()
    if (engines.length === 0)
      throw new EnsembleBusyError(
        'no engine serves cameras here',
        'Set engines to 1 or more in the pipeline file, and see /readyz for engines that failed.',
      )
    const away = engines.find(({ ready }) => !ready)
    if (away !== undefined)
      throw new EnsembleBusyError(
        `engine ${away.setup.index} is not ready`,
        'Ask again when /readyz says that it is.',
      )
    return engines
  }

  /** Never rejects. */
  async #run(change: Change, engines: readonly ChangedEngine[]): Promise<void> {
    const { log } = this.host
    const { name } = change.request
    log.info({ ensemble: name, before: this.#name }, 'ensemble is loaded beside the one that works')
    let reason: string
    let isKept = false
    try {
      reason = await this.#try(change, engines)
      isKept = true
    } catch (error) {
      reason = error instanceof Error ? error.message : String(error)
    }
    if (this.#stopped) return
    const outcome = isKept ? 'kept' : change.state === 'loading' ? 'refused' : 'taken_back'
    if (isKept) {
      this.#name = name
      this.host.keep({ ensemble: name, repositories: this.host.repositoriesFor(name) })
    }
    await this.#settle(change, engines, isKept)
    if (this.#stopped) return
    if (change.state === 'trial') this.host.forgetP99()
    this.#last = {
      name,
      outcome,
      reason,
      agreement: change.agreement,
      comparedFrames: change.comparedFrames,
      p99Ms: change.p99Ms,
      at: new Date(wallMs()).toISOString(),
    }
    this.#change = undefined
    this.host.metrics.ensembleChanges.inc({ outcome })
    log[isKept ? 'info' : 'warn']({ ensemble: name, outcome, reason }, 'change of the ensemble has ended')
  }

  /** @returns why it is kept. @throws Error why it is not */
  async #try(change: Change, engines: readonly ChangedEngine[]): Promise<string> {
    const { log, repositoriesFor, wait = delay } = this.host
    const { name, trial } = change.request
    const { signal } = change.cut
    const all = <Q extends ModelQuestion>(question: Q, atMostMs: number) =>
      unlessAborted(askAll(engines, question, atMostMs), signal)

    await all({ type: 'openEnsemble', ensemble: name, repositories: repositoriesFor(name) }, openAtMostMs)
    change.state = 'comparing'
    log.info({ ensemble: name }, 'ensemble is loaded, and compared with the one that works')
    const meanwhile = new TrialLatency()
    change.latency = meanwhile
    const agreed = await this.#compare(change, all, engines.length)
    meanwhile.end()
    const beforeMs = new Map([...meanwhile.p99Ms, ...change.beforeMs])
    change.p99Ms = worstOf(beforeMs, new Map())
    change.state = 'trial'
    log.info({ ensemble: name, seconds: trial.seconds, agreed }, 'cameras go over to the ensemble, on trial')
    const detectors = await all({ type: 'useEnsemble', tried: true }, goOverAtMostMs)
    for (const [index, detector] of detectors) this.host.uses(index, detector, false)
    const forMs = trial.seconds * 1_000
    const latency = new TrialLatency(Math.min(settlesInMs, forMs / 10))
    change.latency = latency
    await unlessAborted(wait(forMs, signal), signal)
    latency.end()
    change.p99Ms = worstOf(beforeMs, latency.p99Ms)
    const fault = latencyFault(change.p99Ms, trial.maxP99Ratio)
    if (fault !== undefined) throw new Stopped(fault)
    return `${agreed}; ${latencyText(change.p99Ms)}`
  }

  /** @returns how far the two agree, for people. @throws Error where they do too little, or it fails */
  async #compare(
    change: Change,
    all: (
      question: Extract<ModelQuestion, { type: 'compareEnsembles' }>,
      atMostMs: number,
    ) => Promise<ReadonlyMap<number, ComparedFrames>>,
    engines: number,
  ): Promise<string> {
    const { minAgreement, seconds } = change.request.trial
    const forMs = (seconds / 2) * 1_000
    const frames = Math.ceil(mostFrames / engines)
    const parts = await all({ type: 'compareEnsembles', frames, forMs }, forMs + answerWithinMs)
    const sum = joinedAgreement(parts.values())
    const { agreement, frames: compared, before, after, matched } = sum
    change.agreement = agreement === null ? null : Math.round(agreement * 10_000) / 10_000
    change.comparedFrames = compared
    const failure = [...parts.values()].map((part) => part.failure).find((text) => text !== '')
    if (failure !== undefined) throw new Stopped(failure)
    if (agreement === null) return 'no frame could be compared, so that minAgreement does not apply'
    const text = `agreement ${agreement.toFixed(3)} on ${compared} frames: of ${before} detections before and ${after} after ${matched} are the same`
    if (agreement < minAgreement) throw new Stopped(`${text}; minAgreement is ${minAgreement}`)
    return text
  }

  /** Lets the one go that is not in force, on every engine that still has both. Never rejects. */
  async #settle(change: Change, engines: readonly ChangedEngine[], keeps: boolean): Promise<void> {
    const { log, uses } = this.host
    const question = { type: 'settleEnsemble', keeps } as const
    await Promise.all(
      engines.map(async (engine) => {
        const { index } = engine.setup
        // One that was started again meanwhile has the one in force.
        if (!engine.ready) return
        try {
          uses(index, await engine.ask(question, openAtMostMs + goOverAtMostMs), true)
        } catch (error) {
          if (!this.#stopped)
            log.warn(
              { engine: index, ensemble: change.request.name, err: error },
              'engine does not settle a change of the ensemble',
            )
        }
      }),
    )
  }
}

/** @returns what each answers, by its index. @throws what the first throws */
async function askAll<Q extends ModelQuestion>(
  engines: readonly ChangedEngine[],
  question: Q,
  atMostMs: number,
) {
  const answers = engines.map(
    async (engine) => [engine.setup.index, await engine.ask(question, atMostMs)] as const,
  )
  return new Map(await Promise.all(answers))
}

function latencyText({ before, after }: P99Pair): string {
  if (before === null) return 'no camera was live before, so that maxP99Ratio does not apply'
  return `p99 of capture to publish ${before} ms before and ${after} ms in the trial`
}
