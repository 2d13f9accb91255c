import type { Service } from '../lifecycle/service.js'
import { fork, type ChildProcess } from 'node:child_process'
import type { Socket } from 'node:net'
import { RemoteError, type ErrorRecord, type GantryError } from '../errors.js'
import { backoffMs } from '../lifecycle/backoff.js'
import { nowMs } from '../lifecycle/clock.js'
import { withDeathSignal } from '../lifecycle/death-signal.js'
import { atMost } from '../lifecycle/delay.js'
import type { Log } from '../lifecycle/log.js'
import type { ProcessHealth, ProcessState } from '../lifecycle/process-health.js'
import { systemLimit } from '../lifecycle/system-limit.js'
import { acceptedFlags } from '../lifecycle/v8-flags.js'
import { SilenceWatch, type SilenceLimits } from './silence-watch.js'

const silence = { hungAfterMs: 10_000, busyCpuMs: 0, busyAtMostMs: 300_000, lookEveryMs: 1_000 }
const questionAtMostMs = 5_000
/** Deaths inside this window make the next restart wait longer. */
const crashWindowMs = 60_000
const crashLoopDeaths = 5
const restartBackoff = { baseMs: 100, capMs: 30_000 }

type Message<Type extends string, Body = unknown> = Readonly<{ type: Type } & Body>

/** What every supervised process says, besides its own messages. `ready` and `beat` may carry more. */
export type FromChild =
  | Message<'online'>
  | Message<'ready'>
  | Message<'failed', { error: ErrorRecord }>
  | Message<'beat'>
  | Message<'answer', { requestId: number; value: unknown }>
  | Message<'refused', { requestId: number; error: ErrorRecord }>
  | Message<'stopped'>

/** What is left for the owner of a process: all that is not seen to here. Beats are seen to in both places. */
export type OwnMessage<From extends Said> = Exclude<From, Said<Exclude<FromChild['type'], 'beat'>>>

type Said<Type extends string = string> = Readonly<{ type: Type }>

export type ProcessSpec = Readonly<{
  /** `engine`, as logs and reasons call it. */
  title: string
  /** Fields of every line it is the subject of. */
  logFields: Readonly<Record<string, unknown>>
  /** Path of the compiled entry file. */
  entry: string
  /** What V8 is told for the process; a flag that this version of Node does not know is left out. */
  v8Flags?: readonly string[]
  /** Answer to `online`, made anew for every start. */
  setup: () => object
  /** Longest from start to `ready`. */
  loadAtMostMs: number
  /** What happens when the first start fails: nothing more, or it is tried again like after a death. */
  onFirstFailure: 'end' | 'retry'
  /** When its silence means that it hangs; by default 10 s, however busy it is. */
  silence?: Partial<SilenceLimits>
  /** The error of a question that cannot be answered. */
  unavailable(reason: string): GantryError
}>

export type ProcessEvents<From extends Said> = Readonly<{
  /** It serves. Called again after every restart. */
  ready(message: Extract<From, Said<'ready'>>): void
  /** It is gone, with whatever was in it. */
  gone(reason: string): void
  /**
   * Called before `gone`. Absent: no.
   *
   * @param byItself - it was not ended from here.
   * @returns whether what ended it is kept from doing so again: it is then started at once, however often it ended before.
   */
  isCured?(reason: string, byItself: boolean): boolean
  message(message: OwnMessage<From>): void
}>

type Pending = { resolve(value: unknown): void; reject(error: Error): void; timer: NodeJS.Timeout }

const shared: Readonly<Record<FromChild['type'], true>> = {
  online: true,
  ready: true,
  failed: true,
  beat: true,
  answer: true,
  refused: true,
  stopped: true,
}

function isShared(message: Said): message is FromChild {
  return Object.hasOwn(shared, message.type)
}

function isOwn<From extends Said>(message: From): message is OwnMessage<From> {
  return !isShared(message) || message.type === 'beat'
}

/** One child process under supervision: started, set up, watched, asked, restarted when it dies, and ended. */
export class SupervisedProcess<From extends Said, To extends Said> implements Service {
  #child: ChildProcess | undefined
  #state: ProcessState = 'starting'
  #reason = 'not started'
  /** Why it could not start, as it said itself. */
  #failure: string | undefined
  /** It was ended from here. */
  #isKilled = false
  #restarts = 0
  #deathsMs: number[] = []
  #restartTimer: NodeJS.Timeout | undefined
  #watchdog: NodeJS.Timeout | undefined
  #silence: SilenceWatch | undefined
  #requestId = 0
  #pending = new Map<number, Pending>()
  /** Connections on their way to the process. */
  readonly #passing = new Set<Socket>()
  #firstReady: { resolve(): void; reject(error: Error): void } | undefined

  constructor(
    readonly spec: ProcessSpec,
    readonly events: ProcessEvents<From>,
    readonly log: Log,
  ) {}

  get health(): ProcessHealth {
    return {
      state: this.#state,
      pid: this.#child?.pid ?? null,
      restarts: this.#restarts,
      reason: this.#reason,
    }
  }

  get ready(): boolean {
    return this.#state === 'ready'
  }

  /** Resolves once it is ready for the first time, or is stopped. @throws GantryError what it says when it cannot start, if that ends it. */
  async start(): Promise<void> {
    if (this.#state === 'stopped') return
    const ready = new Promise<void>((resolve, reject) => {
      this.#firstReady = { resolve, reject }
    })
    this.#spawn()
    await ready
  }

  /**
   * Does nothing while the process is away: what it must know is told again when it is ready.
   *
   * @param written - called once the message has left this process, or cannot any more.
   * @returns whether it was told.
   */
  tell(message: To, written?: () => void): boolean {
    if (this.#state !== 'ready' || !this.#child?.connected) return false
    this.#child.send(message, () => written?.())
    return true
  }

  /** Gives it a connection, of which nothing may be read here any more. @returns whether it takes it: not while it is away. */
  pass(message: To, socket: Socket): boolean {
    if (this.#state !== 'ready' || !this.#child?.connected) return false
    this.#passing.add(socket)
    // Without `keepOpen` Node closes our side when the process has acknowledged the connection; of one that dies first it never does, and
    // the client would wait for ever.
    this.#child.send(message, socket, { keepOpen: true }, () => this.#passed(socket))
    return true
  }

  /** The kernel has it for the process, or nobody will. */
  #passed(socket: Socket): void {
    this.#passing.delete(socket)
    socket.destroy()
  }

  /** @throws GantryError `unavailable` when the process is away, dies or does not answer in time; what it refuses with. */
  ask(question: unknown, atMostMs = questionAtMostMs): Promise<unknown> {
    const child = this.#child
    if (this.#state !== 'ready' || !child?.connected)
      return Promise.reject(this.spec.unavailable(this.#reason))
    const requestId = ++this.#requestId
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#pending.delete(requestId)
        reject(this.spec.unavailable(`no answer within ${atMostMs} ms`))
      }, atMostMs)
      this.#pending.set(requestId, { resolve, reject, timer })
      child.send({ type: 'ask', requestId, question })
    })
  }

  /** Idempotent, never rejects. Asks the process to drain, then kills it. */
  async stop(drainMs: number): Promise<void> {
    if (this.#state === 'stopped') return
    const child = this.#child
    const wasReady = this.#state === 'ready'
    this.#state = 'stopped'
    this.#reason = 'stopped'
    clearTimeout(this.#restartTimer)
    this.#unwatch()
    // Whoever waits for a first readiness that is not to come is let go.
    this.#firstReady?.resolve()
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    if (wasReady && child.connected) {
      child.send({ type: 'stop', drainMs })
      await atMost(drainMs + 1_000, exited)
    }
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await exited
  }

  #spawn(): void {
    try {
      this.#fork()
    } catch (error) {
      // Some refusals are thrown, others are events.
      this.#child = undefined
      this.#neverRan(error)
    }
  }

  #neverRan(error: unknown): void {
    const limit = systemLimit(error)
    const reason = limit?.reason ?? (error instanceof Error ? error.message : String(error))
    this.log.error(
      { ...this.spec.logFields, err: error, ...(limit && { reason, hint: limit.hint }) },
      `${this.spec.title} cannot be started`,
    )
    this.#exited(this.#child, `it cannot be started: ${reason}`)
  }

  #fork(): void {
    const [execPath, execArgv] = withDeathSignal(process.execPath, acceptedFlags(this.spec.v8Flags ?? []))
    const child = fork(this.spec.entry, [], {
      // Not 'advanced': its deserialiser holds every message until the next full collection, and all of them grow old.
      serialization: 'json',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      execPath,
      execArgv,
      // A group of its own: Ctrl-C in a terminal is for the control process, which ends its children in good order.
      detached: true,
    })
    this.#child = child
    this.#failure = undefined
    this.#isKilled = false
    const { pid } = child
    if (pid !== undefined) {
      const limits = { ...silence, ...this.spec.silence }
      this.#silence = new SilenceWatch(pid, limits, (problem) => this.#kill(problem))
    }
    this.#expectWithin(this.spec.loadAtMostMs, 'did not become ready in time')
    child.on('message', (message: From) => this.#receive(child, message))
    child.on('error', (error) => {
      // One that never ran does not exit.
      if (child.pid === undefined) this.#neverRan(error)
      else this.log.error({ ...this.spec.logFields, err: error }, `${this.spec.title} process error`)
    })
    child.on('exit', (code, signal) => this.#exited(child, signal ?? `exit code ${code ?? 'unknown'}`))
  }

  #receive(child: ChildProcess, message: From): void {
    if (child !== this.#child) return
    if (isOwn(message)) this.events.message(message)
    if (!isShared(message)) return
    switch (message.type) {
      case 'online':
        child.send(this.spec.setup())
        return
      case 'ready':
        this.#becomeReady(message as Extract<From, Said<'ready'>>)
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
        if (this.#state === 'ready') this.#silence?.beat()
        return
      case 'stopped':
        // Its exit follows, and tells.
        return
      default:
        message satisfies never
    }
  }

  #becomeReady(message: Extract<From, Said<'ready'>>): void {
    this.#state = 'ready'
    this.#reason = ''
    clearTimeout(this.#watchdog)
    this.#silence?.beat()
    this.events.ready(message)
    this.#firstReady?.resolve()
    this.#firstReady = undefined
  }

  /** What makes the first start impossible may end it; later it is a death like another. */
  #failedToStart(error: ErrorRecord): void {
    this.#reason = error.message
    this.#failure = error.message
    // What the machine lacks may be there the next time.
    if (this.#firstReady && this.spec.onFirstFailure === 'end' && error.code !== 'GANTRY_ENVIRONMENT') {
      this.#state = 'failed'
      this.#firstReady.reject(new RemoteError(error))
      this.#firstReady = undefined
    } else this.log.error({ ...this.spec.logFields, ...error }, `${this.spec.title} gives up`)
    this.#isKilled = true
    this.#child?.kill('SIGKILL')
  }

  #expectWithin(ms: number, otherwise: string): void {
    clearTimeout(this.#watchdog)
    this.#watchdog = setTimeout(() => this.#kill(otherwise), ms)
  }

  #kill(problem: string): void {
    this.log.error(this.spec.logFields, `${this.spec.title} ${problem}, killing it`)
    this.#isKilled = true
    this.#child?.kill('SIGKILL')
  }

  #unwatch(): void {
    clearTimeout(this.#watchdog)
    this.#silence?.stop()
    this.#silence = undefined
  }

  #exited(child: ChildProcess | undefined, reason: string): void {
    if (child !== this.#child) return
    this.#unwatch()
    for (const requestId of [...this.#pending.keys()]) {
      this.#settle(requestId)?.reject(this.spec.unavailable('it exited while the request was in it'))
    }
    for (const socket of this.#passing) this.#passed(socket)
    if (this.#state === 'stopped' || this.#state === 'failed') return
    const isCured = this.events.isCured?.(reason, !this.#isKilled) ?? false
    this.events.gone(reason)
    this.#restart(this.#failure ?? reason, isCured)
  }

  #restart(reason: string, isCured: boolean): void {
    const now = nowMs()
    this.#deathsMs = isCured
      ? []
      : [...this.#deathsMs.filter((deathMs) => now - deathMs < crashWindowMs), now]
    const deaths = this.#deathsMs.length
    const waitMs = deaths <= 1 ? 0 : backoffMs(deaths >= crashLoopDeaths ? 10 : deaths, restartBackoff)
    this.#state = 'restarting'
    this.#reason = `${this.spec.title} ended (${reason}); ${deaths} deaths in ${crashWindowMs / 1_000} s`
    this.#restarts += 1
    this.log.error(
      { ...this.spec.logFields, reason, deaths, waitMs: Math.round(waitMs) },
      `${this.spec.title} ended, restarting it`,
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
