import type { CameraConfig } from '../config/camera.js'
import type { CameraDecoding, CameraStatus } from '../vision/camera-state.js'
import type { FrameSource, SourceWarning } from '../vision/frame-source.js'
import { nowMs, wallMs } from '../lifecycle/clock.js'
import type { ToldDecoding } from './decode-policy.js'
import { FrameStamper } from './frame-stamper.js'
import type { PictureInfo } from './picture-pairing.js'
import type { OpenSession, Session, SessionEnd } from './session.js'
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

/** Longest wait for the first picture. It is long, because a camera that hangs comes back soonest in an attempt that still waits. */
const firstPictureMs = 30_000

/** A decoder that hangs while connecting gives its turn to the next camera after this. */
const longestTurnMs = 5_000

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
    (silentMs) => this.#event({ type: 'silent', silentMs }),
    (silentMs) => this.#session?.waitsForKey?.(silentMs) ?? false,
  )
  #state: SourceState = initialSourceState
  #session: Session | undefined
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
    this.#teller = new StatusTeller('connecting', 'not started', (status) => deps.listener.status(status))
    this.#policy = { backoff, stableMs, loop: camera.loop, random: deps.random ?? Math.random }
  }

  get status(): CameraStatus {
    return this.#teller.status
  }

  decoderCpuSeconds(): number {
    return this.#endedCpuSeconds + (this.#session?.cpuSeconds() ?? 0)
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
    this.#watchdog.arm(Math.max(this.#silenceMs(), firstPictureMs))
    this.#stamper.newSession()
    const session = this.openSession({
      opened: () => this.#event({ type: 'opened' }),
      picture: (rgbHwc, info) => this.#picture(rgbHwc, info),
      warning: (kind, detail) => this.#warn(kind, detail),
      decoding: (told) => this.#decoding(told),
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

  #picture(rgbHwc: ArrayBuffer, info: PictureInfo): void {
    // Silence was declared already: a frame that slips through while the decoder is being ended would contradict the state.
    if (this.#stopped !== undefined || this.#state.phase.name === 'ending') {
      this.deps.pool.give(rgbHwc)
      return
    }
    if (this.#state.phase.name === 'connecting') {
      this.#watchdog.arm(this.#silenceMs())
      this.#event({ type: 'picture' })
    }
    this.#watchdog.feed()
    const times = info.arrived ?? { arrivedMs: nowMs(), wallMs: wallMs() }
    const jumpedMs = this.#stamper.jumpOf(info, times.arrivedMs)
    if (jumpedMs !== undefined)
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

  /** Sampled frames are `1 / sampleFps` apart even when all is well. */
  #silenceMs(): number {
    return this.camera.stallTimeoutMs + 1_000 / this.camera.sampleFps
  }

  #exitGate(): void {
    clearTimeout(this.#turnTimer)
    this.#leaveGate?.()
    this.#leaveGate = undefined
  }
}
