import { fork, type ChildProcess } from 'node:child_process'
import { EngineUnavailableError } from '../engine/engine-errors.js'
import type { EngineAnswers, EngineQuestion, EngineSetup, FromEngine, ToEngine } from '../engine/protocol.js'
import type { DetectorInfo } from '../ensemble/camera-detector.js'
import { RemoteError, type ErrorRecord } from '../errors.js'
import { backoffMs } from '../lifecycle/backoff.js'
import { withDeathSignal } from '../lifecycle/death-signal.js'
import { atMost } from '../lifecycle/delay.js'
import { entryPath } from '../lifecycle/entry.js'
import { nowMs } from '../lifecycle/clock.js'
import type { Log } from '../lifecycle/log.js'
import type { EngineHealth } from './gantry.js'

/** An engine beats once a second; one that is silent this long is hung and gets killed. */
const hungAfterMs = 10_000
/** Longest an engine may load its model. */
const loadAtMostMs = 120_000
const questionAtMostMs = 5_000
/** Deaths inside this window make the next restart wait longer. */
const crashWindowMs = 60_000
const crashLoopDeaths = 5
const restartBackoff = { baseMs: 100, capMs: 30_000 }

export type EngineEvents = Readonly<{
  /** A detector runs: cameras can be given to the engine. Called again after every restart. */
  ready(detector: DetectorInfo): void
  /** The engine is gone; whatever was in it is lost. */
  gone(reason: string): void
  message(message: FromEngine): void
}>

type Pending = { resolve(value: unknown): void; reject(error: Error): void; timer: NodeJS.Timeout }

/** One engine process under supervision: started, watched, asked, restarted when it dies, and ended. */
export class EngineProcess {
  #child: ChildProcess | undefined
  #state: EngineHealth['state'] = 'starting'
  #reason = 'not started'
  #detector: DetectorInfo | null = null
  #restarts = 0
  #deathsMs: number[] = []
  #restartTimer: NodeJS.Timeout | undefined
  #watchdog: NodeJS.Timeout | undefined
  #requestId = 0
  #pending = new Map<number, Pending>()
  #firstReady: { resolve(): void; reject(error: Error): void } | undefined

  constructor(
    readonly setup: EngineSetup,
    readonly events: EngineEvents,
    readonly log: Log,
  ) {}

  get health(): Omit<EngineHealth, 'cameras'> {
    return {
      index: this.setup.index,
      state: this.#state,
      pid: this.#child?.pid ?? null,
      restarts: this.#restarts,
      reason: this.#reason,
      detector: this.#detector,
    }
  }

  get ready(): boolean {
    return this.#state === 'ready'
  }

  /** Resolves once the first detector runs. @throws GantryError what the engine says when its model cannot be used. */
  async start(): Promise<void> {
    const ready = new Promise<void>((resolve, reject) => {
      this.#firstReady = { resolve, reject }
    })
    this.#spawn()
    await ready
  }

  /** Does nothing while the engine is away: what it must know is told again when it is ready. */
  tell(message: ToEngine): void {
    if (this.#state === 'ready' && this.#child?.connected) this.#child.send(message)
  }

  /** @throws EngineUnavailableError `GANTRY_ENGINE_UNAVAILABLE` when the engine is away, dies or does not answer. */
  ask<Q extends EngineQuestion>(question: Q): Promise<EngineAnswers[Q['type']]> {
    if (this.#state !== 'ready') return Promise.reject(new EngineUnavailableError(this.#reason))
    const requestId = ++this.#requestId
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#pending.delete(requestId)
        reject(new EngineUnavailableError(`no answer within ${questionAtMostMs} ms`))
      }, questionAtMostMs)
      this.#pending.set(requestId, { resolve, reject, timer })
      this.tell({ type: 'ask', requestId, question })
    })
  }

  /** Idempotent, never rejects. Asks the engine to drain, then kills it. */
  async stop(drainMs: number): Promise<void> {
    if (this.#state === 'stopped') return
    const child = this.#child
    const wasReady = this.#state === 'ready'
    this.#state = 'stopped'
    this.#reason = 'stopped'
    clearTimeout(this.#restartTimer)
    clearTimeout(this.#watchdog)
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    if (wasReady && child.connected) {
      child.send({ type: 'stop', drainMs } satisfies ToEngine)
      await atMost(drainMs + 1_000, exited)
    }
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await exited
  }

  #spawn(): void {
    const [execPath, execArgv] = withDeathSignal(process.execPath, [])
    const child = fork(entryPath(import.meta.url, '../engine/main.js'), [], {
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      execPath,
      execArgv,
      // A group of its own: Ctrl-C in a terminal is for the control process, which ends its engines in good order.
      detached: true,
    })
    this.#child = child
    this.#expectWithin(loadAtMostMs, 'did not load its model in time')
    child.on('message', (message: FromEngine) => this.#receive(child, message))
    child.on('error', (error) =>
      this.log.error({ engine: this.setup.index, err: error }, 'engine process error'),
    )
    child.on('exit', (code, signal) => this.#exited(child, signal ?? `exit code ${code ?? 'unknown'}`))
  }

  #receive(child: ChildProcess, message: FromEngine): void {
    if (child !== this.#child) return
    switch (message.type) {
      case 'online':
        child.send({ type: 'setup', setup: this.setup } satisfies ToEngine)
        return
      case 'ready':
        this.#becomeReady(message.detector)
        return
      case 'failed':
        this.#failedToStart(message.error)
        return
      case 'answer':
        this.#settle(message.requestId)?.resolve(message.value)
        return
      case 'refused':
        this.#settle(message.requestId)?.reject(new RemoteError(message.error))
        return
      case 'beat':
        if (this.#state === 'ready')
          this.#expectWithin(hungAfterMs, `gave no sign of life for ${hungAfterMs} ms`)
        this.events.message(message)
        return
      case 'status':
      case 'warning':
      case 'result':
      case 'instanceExited':
      case 'removed':
      case 'stopped':
        this.events.message(message)
        return
      default:
        message satisfies never
    }
  }

  #becomeReady(detector: DetectorInfo): void {
    this.#state = 'ready'
    this.#reason = ''
    this.#detector = detector
    this.#expectWithin(hungAfterMs, `gave no sign of life for ${hungAfterMs} ms`)
    this.log.info({ engine: this.setup.index, ...describe(detector) }, 'engine ready')
    this.events.ready(detector)
    this.#firstReady?.resolve()
    this.#firstReady = undefined
  }

  /** A model that cannot be used ends the first start; later it is a death like another. */
  #failedToStart(error: ErrorRecord): void {
    this.#reason = error.message
    if (this.#firstReady) {
      this.#state = 'failed'
      this.#firstReady.reject(new RemoteError(error))
      this.#firstReady = undefined
    }
    this.#child?.kill('SIGKILL')
  }

  #expectWithin(ms: number, otherwise: string): void {
    clearTimeout(this.#watchdog)
    this.#watchdog = setTimeout(() => {
      this.log.error({ engine: this.setup.index }, `engine ${otherwise}, killing it`)
      this.#child?.kill('SIGKILL')
    }, ms)
  }

  #exited(child: ChildProcess, reason: string): void {
    if (child !== this.#child) return
    clearTimeout(this.#watchdog)
    for (const requestId of [...this.#pending.keys()]) {
      this.#settle(requestId)?.reject(new EngineUnavailableError('it exited while the request was in it'))
    }
    if (this.#state === 'stopped' || this.#state === 'failed') return
    this.events.gone(reason)
    this.#restart(reason)
  }

  #restart(reason: string): void {
    const now = nowMs()
    this.#deathsMs = [...this.#deathsMs.filter((deathMs) => now - deathMs < crashWindowMs), now]
    const deaths = this.#deathsMs.length
    const waitMs = deaths === 1 ? 0 : backoffMs(deaths >= crashLoopDeaths ? 10 : deaths, restartBackoff)
    this.#state = 'restarting'
    this.#reason = `engine ended (${reason}); ${deaths} deaths in ${crashWindowMs / 1_000} s`
    this.#restarts += 1
    this.log.error(
      { engine: this.setup.index, reason, deaths, waitMs: Math.round(waitMs) },
      'engine ended, restarting it',
    )
    this.#restartTimer = setTimeout(() => this.#spawn(), waitMs)
  }

  #settle(requestId: number): Pending | undefined {
    const pending = this.#pending.get(requestId)
    if (pending) clearTimeout(pending.timer)
    this.#pending.delete(requestId)
    return pending
  }
}

function describe({ model, provider, instances, maxBatchSize, head, format }: DetectorInfo) {
  const input = `${format.input.widthPx}x${format.input.heightPx}`
  return { model: `${model.name}/${model.version}`, head, input, provider, instances, maxBatchSize }
}
