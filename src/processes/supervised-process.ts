import type { Service } from '../lifecycle/service.js'
import { fork, type ChildProcess } from 'node:child_process'
import type { Socket } from 'node:net'
import { RemoteError, type ErrorRecord } from '../errors.js'
import { withDeathSignal } from '../lifecycle/death-signal.js'
import { atMost } from '../lifecycle/delay.js'
import type { Log } from '../lifecycle/log.js'
import type { ProcessHealth, ProcessState, WokenHealth } from '../lifecycle/process-health.js'
import { mayPass, systemLimit } from '../lifecycle/system-limit.js'
import { acceptedFlags } from '../lifecycle/v8-flags.js'
import { isOwn, isShared } from './child-messages.js'
import { channelDescriptor, FrameChannel, type Said } from './frame-channel.js'
import { OpenQuestions } from './open-questions.js'
import type { ProcessEvents, ProcessSpec } from './process-spec.js'
import { RecentDeaths } from './recent-deaths.js'
import { SilenceWatch } from './silence-watch.js'

const silence = { hungAfterMs: 10_000, busyCpuMs: 0, busyAtMostMs: 300_000, lookEveryMs: 1_000 }
const questionAtMostMs = 5_000
/** Longest between the end of a process and that of its channel. What it said is there then: only the kernel stands in between. */
const endedWithinMs = 1_000

/** The way of bytes to a process. */
export type BytesChannel = Pick<FrameChannel, 'sendBytes' | 'together' | 'unsentBytes'>

/** A process that was started. */
type Run = Readonly<{
  child: ChildProcess
  /** All that it says, and what it is told in bytes. Messages to it go by Node's channel, since sockets go with them. */
  channel: FrameChannel
  /** It is gone, and what it had said was heard. */
  over: Promise<void>
}>

/** One child process under supervision: started, set up, watched, asked, restarted when it dies, and ended. */
export class SupervisedProcess<From extends Said, To extends Said> implements Service {
  #run: Run | undefined
  #state: ProcessState = 'starting'
  #reason = 'not started'
  /** Why it could not start, or go on, as it said itself. */
  #failure: ErrorRecord | undefined
  /** It was ended from here. */
  #isKilled = false
  #restarts = 0
  readonly #deaths = new RecentDeaths()
  #restartTimer: NodeJS.Timeout | undefined
  #watchdog: NodeJS.Timeout | undefined
  #silence: SilenceWatch | undefined
  readonly #questions: OpenQuestions
  /** Connections on their way to the process. */
  readonly #passing = new Set<Socket>()
  #firstReady: { resolve(): void; reject(error: Error): void } | undefined
  #started: Promise<void> | undefined

  constructor(
    readonly spec: ProcessSpec,
    readonly events: ProcessEvents<From>,
    readonly log: Log,
  ) {
    this.#questions = new OpenQuestions((reason) => spec.unavailable(reason))
  }

  get health(): ProcessHealth {
    return {
      state: this.#state,
      pid: this.#run?.child.pid ?? null,
      restarts: this.#restarts,
      reason: this.#reason,
    }
  }

  /** The same where {@link wake} starts it. */
  get wokenHealth(): WokenHealth {
    const isIdle = this.#started === undefined && this.#state !== 'stopped'
    return isIdle ? { ...this.health, state: 'idle', reason: '' } : this.health
  }

  get ready(): boolean {
    return this.#state === 'ready'
  }

  /**
   * Idempotent. Resolves once it is ready for the first time, is stopped, or is held back.
   *
   * @throws GantryError what it says when it cannot start, if that ends it.
   */
  start(): Promise<void> {
    return (this.#started ??= this.#start())
  }

  /**
   * Starts it for its first client, where nobody else does.
   *
   * @returns undefined where there is nothing to wait for; else what resolves when it is ready, or is not within `atMostMs`.
   */
  wake(atMostMs: number): Promise<void> | undefined {
    const wasReady = this.#started !== undefined && this.#firstReady === undefined
    return wasReady ? undefined : atMost(atMostMs, this.start())
  }

  async #start(): Promise<void> {
    if (this.#state === 'stopped') return
    const ready = new Promise<void>((resolve, reject) => {
      this.#firstReady = { resolve, reject }
    })
    this.#spawn()
    await ready
  }

  /** Does nothing while the process is away: what it must know is told again when it is ready. @returns whether it was told. */
  tell(message: To): boolean {
    if (this.#state !== 'ready' || !this.#run?.child.connected) return false
    this.#run.child.send(message)
    return true
  }

  /** Answers what it asked while it starts; does nothing if it has ended since, as the next one asks again. */
  tellStarting(message: To): void {
    const child = this.#run?.child
    if (child?.connected) child.send(message)
  }

  /**
   * Where bytes go to the process, while it is there. They and messages may overtake each other, but for `stop`, which comes with the end of
   * the channel.
   */
  get bytes(): BytesChannel | undefined {
    return this.#state === 'ready' ? this.#run?.channel : undefined
  }

  /** Gives it a connection, of which nothing may be read here any more. @returns whether it takes it: not while it is away. */
  pass(message: To, socket: Socket): boolean {
    if (this.#state !== 'ready' || !this.#run?.child.connected) return false
    this.#passing.add(socket)
    // Without `keepOpen` Node closes our side when the process has acknowledged the connection; of one that dies first it never does, and
    // the client would wait for ever.
    this.#run.child.send(message, socket, { keepOpen: true }, () => this.#passed(socket))
    return true
  }

  /** The kernel has it for the process, or nobody will. */
  #passed(socket: Socket): void {
    this.#passing.delete(socket)
    socket.destroy()
  }

  /** @throws GantryError `unavailable` when the process is away, dies or does not answer in time; what it refuses with. */
  ask(question: unknown, atMostMs = questionAtMostMs): Promise<unknown> {
    const child = this.#run?.child
    if (this.#state !== 'ready' || !child?.connected)
      return Promise.reject(this.spec.unavailable(this.#reason))
    return this.#questions.ask(atMostMs, (requestId) => child.send({ type: 'ask', requestId, question }))
  }

  /** Idempotent, never rejects. Asks the process to drain, then kills it. What it says until then is heard. */
  async stop(drainMs: number): Promise<void> {
    if (this.#state === 'stopped') return
    const run = this.#run
    const wasReady = this.#state === 'ready'
    this.#state = 'stopped'
    this.#reason = 'stopped'
    clearTimeout(this.#restartTimer)
    this.#unwatch()
    // Whoever waits for a first readiness that is not to come is let go.
    this.#firstReady?.resolve()
    if (!run) return
    const { child, channel, over } = run
    if (wasReady && child.connected) {
      void channel.end()
      child.send({ type: 'stop', drainMs })
      await atMost(drainMs + 1_000, over)
    }
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await over
  }

  #spawn(): void {
    try {
      this.#fork()
    } catch (error) {
      // Some refusals are thrown, others are events.
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
    this.#gone(`it cannot be started: ${reason}`)
  }

  #fork(): void {
    this.#run = undefined
    const [execPath, execArgv] = withDeathSignal(process.execPath, acceptedFlags(this.spec.v8Flags ?? []))
    const child = fork(this.spec.entry, [], {
      // Not 'advanced': its deserialiser holds every message until the next full collection, and all of them grow old.
      serialization: 'json',
      // The last is our channel, `channelDescriptor` over there.
      stdio: ['ignore', 'ignore', 'inherit', 'ipc', 'pipe'],
      execPath,
      execArgv,
      env: { ...this.spec.env, ...process.env },
      // A group of its own: Ctrl-C in a terminal is for the control process, which ends its children in good order.
      detached: true,
    })
    this.#failure = undefined
    this.#isKilled = false
    const { pid } = child
    child.on('error', (error) => {
      // One that never ran does not exit.
      if (pid === undefined) this.#neverRan(error)
      else this.log.error({ ...this.spec.logFields, err: error }, `${this.spec.title} process error`)
    })
    if (pid === undefined) return
    const limits = { ...silence, ...this.spec.silence }
    this.#silence = new SilenceWatch(pid, limits, (problem) => this.#kill(problem))
    this.#expectWithin(this.spec.loadAtMostMs, 'did not become ready in time')
    const channel = new FrameChannel(child.stdio[channelDescriptor] as Socket, {
      message: (message) => this.#receive(child, message as From),
      ...(this.events.bytes && { bytes: (body) => this.events.bytes?.(body) }),
      broken: (problem) => this.#kill(`broke the channel: ${problem}`),
    })
    const over = new Promise<void>((resolve) => {
      child.once('exit', (code, signal) => {
        void this.#heardOut(channel).then(() => {
          this.#gone(signal ?? `exit code ${code ?? 'unknown'}`)
          resolve()
        })
      })
    })
    this.#run = { child, channel, over }
    void channel.ended.then(() => this.#endsWith(channel, over))
  }

  /** What a process said before its end is in the channel still. */
  async #heardOut(channel: FrameChannel): Promise<void> {
    await atMost(endedWithinMs, channel.ended)
    channel.close()
  }

  /** Nothing is to be heard of a process that has closed its channel, so it has to end, too. */
  async #endsWith({ isTorn }: FrameChannel, over: Promise<void>): Promise<void> {
    const isOver = await atMost(
      endedWithinMs,
      over.then(() => true),
    )
    if (isOver || this.#state === 'stopped') return
    this.#kill(`closed its channel${isTorn ? ' in the middle of a frame' : ''}`)
  }

  #receive(child: ChildProcess, message: From): void {
    if (isOwn(message)) this.events.message(message)
    if (!isShared(message)) return
    switch (message.type) {
      case 'online':
        if (child.connected) child.send(this.spec.setup())
        return
      case 'ready':
        if (this.#state !== 'stopped') this.#becomeReady(message as Extract<From, Said<'ready'>>)
        return
      case 'failed':
        this.#failedToStart(message.error)
        return
      case 'answer':
        this.#questions.answered(message.requestId, message.value)
        return
      case 'refused':
        this.#questions.refused(message.requestId, message.error)
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
    this.#failure = error
    const { triesOnce, endsStart } = this.spec
    // What the machine lacks may be there the next time.
    const ends = triesOnce === true || (!mayPass(error.code) && endsStart?.(error) === true)
    if (this.#firstReady && ends) this.#endStart(error.message, new RemoteError(error))
    else this.log.error({ ...this.spec.logFields, ...error }, `${this.spec.title} gives up`)
    this.#isKilled = true
    this.#run?.child.kill('SIGKILL')
  }

  /** It is not started again. */
  #endStart(reason: string, error: Error): void {
    this.#state = 'failed'
    this.#reason = reason
    this.#firstReady?.reject(error)
    this.#firstReady = undefined
  }

  #expectWithin(ms: number, otherwise: string): void {
    clearTimeout(this.#watchdog)
    this.#watchdog = setTimeout(() => this.#kill(otherwise), ms)
  }

  #kill(problem: string): void {
    this.log.error(this.spec.logFields, `${this.spec.title} ${problem}, killing it`)
    this.#isKilled = true
    this.#run?.child.kill('SIGKILL')
  }

  #unwatch(): void {
    clearTimeout(this.#watchdog)
    this.#silence?.stop()
    this.#silence = undefined
  }

  #gone(reason: string): void {
    this.#unwatch()
    this.#questions.abandon('it exited while the request was in it')
    for (const socket of this.#passing) this.#passed(socket)
    if (this.#state === 'stopped' || this.#state === 'failed') return
    if (this.#firstReady && this.spec.triesOnce === true)
      return this.#endStart(reason, this.spec.unavailable(reason))
    const deaths = this.#deaths.add()
    const failure = this.#failure
    const heldMs = this.events.startsAgainIn?.({ reason, byItself: !this.#isKilled, failure, deaths })
    this.events.gone(reason)
    this.#restart(failure?.message ?? reason, heldMs)
  }

  /** @param heldMs - until it is started again; undefined: as its deaths say. */
  #restart(reason: string, heldMs: number | undefined): void {
    if (heldMs !== undefined) this.#deaths.forget()
    const waitMs = heldMs ?? this.#deaths.waitMs
    this.#state = 'restarting'
    this.#reason = `${this.spec.title} ended (${reason}); ${this.#deaths.text}`
    this.#restarts += 1
    if (heldMs !== undefined && heldMs > 0) {
      this.#firstReady?.resolve()
      this.#firstReady = undefined
    }
    this.log.error(
      { ...this.spec.logFields, reason, deaths: this.#deaths.count, waitMs: Math.round(waitMs) },
      `${this.spec.title} ended, restarting it`,
    )
    this.#restartTimer = setTimeout(() => this.#spawn(), waitMs)
  }
}
