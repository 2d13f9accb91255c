import { existsSync } from 'node:fs'
import type { CameraConfig } from '../config/camera.js'
import type { CameraStatus } from '../frames/camera-state.js'
import type { FrameSource, SourceWarning } from '../frames/frame-source.js'
import { nowMs } from '../lifecycle/clock.js'
import { delay } from '../lifecycle/delay.js'
import type { CameraLocation } from './camera-url.js'
import { DecoderSession } from './decoder-session.js'
import type { DecoderInput, Hwaccel } from './ffmpeg-command.js'
import type { SourceDeps } from './source-deps.js'
import { advance, idleMachine, type Machine, type MachineEvent } from './source-machine.js'
import { StatusTeller } from './status-teller.js'
import { FrameStamp } from './frame-stamp.js'

/** A session that took this long has limited the rate of attempts by itself; it need not wait long for the next. */
const slowAttemptMs = 4_000
const waitAfterSlowMs = 1_000

/**
 * A camera kept alive: one decoder at a time, watched for silence, ended when it hangs, started again after a wait.
 *
 * There is never more than one session to the camera, because many cameras take no second.
 */
export class SupervisedSource implements FrameSource {
  readonly #teller: StatusTeller
  readonly #stopping = new AbortController()
  readonly #stamp = new FrameStamp()
  #machine: Machine = idleMachine
  #session: DecoderSession | undefined
  #hwaccel: Hwaccel
  #running: Promise<void> = Promise.resolve()
  #endedCpuSeconds = 0

  constructor(
    readonly camera: CameraConfig,
    readonly input: DecoderInput,
    readonly deps: SourceDeps,
  ) {
    this.#teller = new StatusTeller('connecting', 'starting', (status) => deps.listener.status(status))
    this.#hwaccel = this.#chooseHwaccel()
  }

  get status(): CameraStatus {
    return this.#teller.status
  }

  decoderCpuSeconds(): number {
    return this.#endedCpuSeconds + (this.#session?.cpuSeconds() ?? 0)
  }

  start(): void {
    this.#running = this.#run()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#session?.stop()
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted && this.#machine.state !== 'failed') {
      const leaveGate = await this.deps.connectGate.enter(signal)
      if (!leaveGate) return
      await this.#attempt(leaveGate)
      if (signal.aborted) return
      if (this.#machine.retryInMs !== undefined) await delay(this.#machine.retryInMs, signal)
    }
  }

  async #attempt(leaveGate: () => void): Promise<void> {
    this.#apply({ type: 'attempt' })
    this.#stamp.restart()
    const startedMs = nowMs()
    const session = new DecoderSession(this.camera, this.input, this.#hwaccel, this.#stamp, this.deps, {
      firstFrame: leaveGate,
      frame: () => this.#apply({ type: 'frame' }),
      silent: (silentMs) => {
        this.#apply({ type: 'silent', silentMs })
        this.#warn('decoder_killed', `no frame for ${Math.round(silentMs)} ms`)
      },
    })
    this.#session = session
    const end = await session.run(this.#stopping.signal)
    leaveGate()
    this.#endedCpuSeconds += end.cpuSeconds
    this.#session = undefined
    if (!this.#stopping.signal.aborted) this.#ended(end, nowMs() - startedMs)
  }

  #ended(end: Awaited<ReturnType<DecoderSession['run']>>, tookMs: number): void {
    if (end.hwaccelFailed) {
      this.#warn(
        'hwaccel_fallback',
        `${this.#hwaccel} does not work here: ${end.reason}; decoding in software`,
      )
      this.#hwaccel = 'none'
      this.#apply({ type: 'ended', reason: 'decoding in software instead', restartAtOnce: true })
    } else if (end.finished && this.input.kind === 'file' && !this.camera.loop) {
      this.#apply({ type: 'gaveUp', reason: 'the file has been played to its end' })
    } else if (this.input.kind === 'file' && !existsSync(this.input.path)) {
      this.#apply({ type: 'gaveUp', reason: 'the file is gone' })
    } else {
      const restartAtOnce = end.finished && this.input.kind === 'file'
      this.#apply({ type: 'ended', reason: end.reason, restartAtOnce })
      const { retryInMs } = this.#machine
      if (tookMs > slowAttemptMs && retryInMs !== undefined) {
        this.#machine = { ...this.#machine, retryInMs: Math.min(retryInMs, waitAfterSlowMs) }
      }
    }
  }

  #apply(event: MachineEvent): void {
    this.#machine = advance(this.#machine, event, nowMs(), this.deps.random ?? Math.random)
    const { state, reason, attempts, retryInMs } = this.#machine
    this.#teller.set({ state, reason, attempts, ...(retryInMs === undefined ? {} : { retryInMs }) })
  }

  #warn(kind: SourceWarning, detail: string): void {
    this.deps.listener.warning(kind, detail)
  }

  /** `auto` takes what the machine has a device for; without one it is software from the start, and says so. */
  #chooseHwaccel(): Hwaccel {
    if (this.camera.hwaccel !== 'auto') return this.camera.hwaccel
    if (existsSync('/dev/nvidia0')) return 'cuda'
    if (existsSync('/dev/dri/renderD128')) return 'vaapi'
    this.#warn('hwaccel_fallback', 'this machine has no device for hardware decoding; decoding in software')
    return 'none'
  }
}

/** Whether ffmpeg decodes this kind of camera. */
export function isDecoderInput(location: CameraLocation): location is DecoderInput {
  return location.kind === 'rtsp' || location.kind === 'http' || location.kind === 'file'
}
