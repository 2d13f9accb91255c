import type { CameraConfig } from '../config/camera.js'
import type { CameraDecoding, CameraStatus } from '../vision/camera-state.js'
import type { FrameSource, SentPictureSource, SourceWarning } from '../vision/frame-source.js'
import { nowMs, wallMs } from '../lifecycle/clock.js'
import type { ToldDecoding } from './decode-policy.js'
import { FrameStamper } from './frame-stamper.js'
import type { PictureInfo } from './picture-pairing.js'
import { PictureRhythm } from './picture-rhythm.js'
import type { OpenSession, Session, SessionEnd, SignsOfLife } from './session.js'
import type { SourceDeps } from './source-deps.js'
import {
  initialSourceState,
  stepSource,
  type SourceEffect,
  type SourceEvent,
  type SourcePolicy,
  type SourceState,
} from './source-state.js'
import { StatusTeller } from './status-teller.js'
import { Watchdog } from './watchdog.js'

/** A decoder that hangs while connecting gives its turn to the next camera after this. */
const longestTurnMs = 5_000

/** How often a silence that is borne is looked at. */
const lookEveryMs = 5_000

const backoff = { baseMs: 500, capMs: 30_000 }
const stableMs = 60_000

/**
 * Keeps one camera going: at most one session at a time, watched for silence, ended and begun again with back-off. What to do is
 * decided by {@link stepSource}; here it is done.
 */
export class SupervisedSource implements FrameSource {
  readonly #stamper: FrameStamper
  readonly #teller: StatusTeller
  readonly #policy: SourcePolicy
  readonly #watchdog = new Watchdog(
    (silentMs) => this.#silent(silentMs),
    (silentMs) => this.#furtherMs(silentMs),
  )
  readonly #rhythm: PictureRhythm
  #state: SourceState = initialSourceState
  #session: Session | undefined
  /** The session's camera has said that it sends. */
  #isOpen = false
  /** Pictures were left out, and the next one has not come. */
  #leftOut = false
  #endedCpuSeconds = 0
  #leaveGate: (() => void) | undefined
  #turnTimer: NodeJS.Timeout | undefined
  #retryTimer: NodeJS.Timeout | undefined
  #stopped: Promise<void> | undefined
  #decode: CameraDecoding | undefined
  /** Why a camera that is live gives fewer pictures than are wanted; empty where it does not. */
  #tooFew = ''

  constructor(
    readonly camera: CameraConfig,
    readonly deps: SourceDeps,
    readonly openSession: OpenSession,
  ) {
    this.#stamper = new FrameStamper(camera, deps.format, deps.nextSeq)
    this.#rhythm = new PictureRhythm(camera)
    this.#teller = new StatusTeller('connecting', 'not started', (status) => deps.listener.status(status))
    this.#policy = { backoff, stableMs, loop: camera.loop, random: deps.random ?? Math.random }
  }

  get status(): CameraStatus {
    return this.#teller.status
  }

  decoderCpuSeconds(): number {
    return this.#endedCpuSeconds + (this.#session?.cpuSeconds() ?? 0)
  }

  sentPicture(): SentPictureSource | undefined {
    return this.#state.phase.name === 'live' ? this.#session?.sentPicture?.() : undefined
  }

  cardHasRoom(): void {
    if (this.#state.phase.name === 'live') this.#session?.cardHasRoom?.()
  }

  start(): void {
    this.#event({ type: 'start' })
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#teardown()
    return this.#stopped
  }

  async #teardown(): Promise<void> {
    this.#watchdog.disarm()
    clearTimeout(this.#retryTimer)
    this.#exitGate()
    this.#session?.stop()
    await this.#session?.ended
  }

  #event(event: SourceEvent): void {
    if (this.#stopped !== undefined) return
    const { state, effects } = stepSource(this.#state, event, nowMs(), this.#policy)
    this.#state = state
    for (const effect of effects) this.#perform(effect)
  }

  #perform(effect: SourceEffect): void {
    switch (effect.type) {
      case 'queue':
        this.#leaveGate = this.deps.connectGate.request(() => this.#event({ type: 'admitted' }))
        return
      case 'open':
        this.#open()
        return
      case 'leaveGate':
        this.#exitGate()
        return
      case 'stopSession':
        this.#session?.stop()
        return
      case 'retryIn':
        this.#retryTimer = setTimeout(() => this.#event({ type: 'retry' }), effect.forMs)
        return
      case 'status':
        this.#tell(effect.status)
        return
      default:
        effect satisfies never
    }
  }

  #open(): void {
    this.#turnTimer = setTimeout(() => this.#exitGate(), longestTurnMs)
    this.#watchdog.arm(this.#rhythm.leastFirstMs)
    this.#rhythm.begins()
    this.#stamper.newSession()
    this.#isOpen = false
    this.#leftOut = false
    const session = this.openSession({
      opened: () => this.#opened(),
      picture: (rgbHwc, info) => this.#picture(rgbHwc, info),
      warning: (kind, detail) => {
        if (kind === 'decoder_behind') this.#leftOut = true
        this.#warn(kind, detail)
      },
      decoding: (told) => this.#decoding(told),
      stream: (facts) => {
        if (this.#stopped === undefined) this.deps.listener.stream?.(facts)
      },
    })
    this.#session = session
    void session.ended.then((end) => this.#sessionEnded(session, end))
  }

  #sessionEnded(session: Session, end: SessionEnd): void {
    this.#watchdog.disarm()
    this.#endedCpuSeconds += session.cpuSeconds()
    this.#session = undefined
    if (end.kind === 'failed' && end.systemHint !== undefined) this.#tellLimit(end.reason, end.systemHint)
    this.#event({ type: 'ended', end })
  }

  /** Once, until it fails for another reason or has been live. */
  #tellLimit(reason: string, hint: string): void {
    if (reason === this.#state.failure) return
    this.deps.log.error({ reason, hint }, 'a limit of the system keeps the camera from starting')
  }

  #opened(): void {
    this.#isOpen = true
    this.#event({ type: 'opened' })
    if (this.#stopped === undefined) this.deps.listener.opened?.()
  }

  /** @returns how much longer a silence is borne before it is looked at again; 0 where it is too long. */
  #furtherMs(silentMs: number): number {
    const isFirst = this.#state.phase.name === 'connecting'
    const signs = this.#session?.signs?.()
    const mayBeMs = isFirst
      ? this.#rhythm.firstPictureMs(nowMs(), this.#isOpen, signs)
      : this.#rhythm.silenceMs(nowMs(), signs)
    if (silentMs < mayBeMs) {
      if (isFirst) this.#event({ type: 'waits', forMs: silentMs, known: this.#known(signs) })
      return Math.min(lookEveryMs, mayBeMs - silentMs)
    }
    const waits = this.#session?.waitsForKey?.(silentMs) ?? false
    return waits ? (isFirst ? this.#rhythm.leastFirstMs : this.#rhythm.leastMs) : 0
  }

  #known(signs: SignsOfLife | undefined): string {
    if (signs?.life !== 'alive') return 'the connection is open'
    return this.camera.transport === 'udp'
      ? 'the camera answers, and no whole picture has come over UDP; where a firewall holds it back, set transport to tcp'
      : 'the camera answers, and has sent no whole picture'
  }

  #silent(silentMs: number): void {
    const signs = this.#session?.signs?.()
    if (this.#isOpen) this.#rhythm.stalled(silentMs, signs)
    const { stallTimeoutMs } = this.camera
    const told = stallTimeoutMs === undefined ? '' : ` (stallTimeoutMs is ${stallTimeoutMs})`
    const known = signs?.life === 'gone' ? ', and the camera no longer answers' : told
    this.#event({ type: 'silent', silentMs, known })
  }

  #picture(rgbHwc: ArrayBuffer, info: PictureInfo): void {
    // Silence was declared already: a frame that slips through while the decoder is being ended would contradict the state.
    if (this.#stopped !== undefined || this.#state.phase.name === 'ending') {
      this.deps.pool.give(rgbHwc)
      return
    }
    if (this.#state.phase.name === 'connecting') {
      this.#watchdog.arm(this.#rhythm.leastMs)
      this.#event({ type: 'picture' })
    }
    this.#watchdog.feed()
    const times = info.arrived ?? { arrivedMs: nowMs(), wallMs: wallMs() }
    this.#rhythm.picture(times.arrivedMs, info.ptsMs)
    const jumpedMs = this.#stamper.jumpOf(info, times.arrivedMs)
    // Over pictures that were left out time jumps as a matter of course.
    const isTold = this.#leftOut && (jumpedMs ?? 0) > 0
    if (isTold) this.#leftOut = false
    if (jumpedMs !== undefined && !isTold)
      this.#warn('pts_discontinuity', `stream time jumped by ${Math.round(jumpedMs)} ms`)
    this.deps.listener.frame(this.#stamper.stamp(rgbHwc, info, times))
  }

  #tell({ state, reason, retryInMs }: Pick<CameraStatus, 'state' | 'reason' | 'retryInMs'>): void {
    this.#teller.set({
      state,
      reason: state === 'live' ? this.#tooFew : reason,
      attempts: this.#state.attempts,
      ...(retryInMs === undefined ? {} : { retryInMs }),
      ...(state === 'live' && this.#decode !== undefined ? { decode: this.#decode } : {}),
    })
  }

  #decoding({ tooFew, ...decode }: ToldDecoding): void {
    if (this.#stopped !== undefined) return
    if (this.camera.decode !== 'full' && decode.mode !== this.#decode?.mode)
      this.deps.log.info({ decode: decode.mode, reason: decode.reason }, 'how the camera is decoded')
    if (this.camera.hwaccel !== 'none' && decode.by !== this.#decode?.by)
      this.deps.log.info({ by: decode.by, reason: decode.byReason }, 'where the camera is decoded')
    if (tooFew && this.#tooFew === '') this.#warn('few_key_frames', decode.reason)
    this.#decode = decode
    this.#tooFew = tooFew ? decode.reason : ''
    if (this.status.state === 'live') this.#tell(this.status)
  }

  #warn(kind: SourceWarning, detail: string): void {
    if (this.#stopped === undefined) this.deps.listener.warning(kind, detail)
  }

  #exitGate(): void {
    clearTimeout(this.#turnTimer)
    this.#leaveGate?.()
    this.#leaveGate = undefined
  }
}
