import type { CameraConfig } from '../config/camera.js'
import { redactText } from '../config/redact.js'
import { nowMs } from '../lifecycle/clock.js'
import { DamageTracker } from './damage-tracker.js'
import { LogBudget, parseLogLine, type PictureInfo } from './decoder-log.js'
import { DecoderProcess, type DecoderExit } from './decoder-process.js'
import { failureReason, isHwaccelFailure } from './failure-reason.js'
import { decoderArguments, type DecoderInput, type Hwaccel } from './ffmpeg-command.js'
import { FrameAssembler } from './frame-assembler.js'
import type { FrameStamp } from './frame-stamp.js'
import { geometryOf, type FrameGeometry } from './geometry.js'
import type { SourceDeps } from './source-deps.js'

/** A camera may take longer to its first frame than between two. */
const firstFrameAtLeastMs = 10_000
const logLinesPerSecond = 10
const keptLines = 20

export type SessionCallbacks = Readonly<{
  /** Called once, when the decoder is over its start. */
  firstFrame(): void
  frame(): void
  silent(silentMs: number): void
}>

export type SessionEnd = Readonly<{
  reason: string
  /** Ended by itself after frames, without a complaint: the end of a file. */
  finished: boolean
  hwaccelFailed: boolean
  cpuSeconds: number
}>

type Sampled = Readonly<{ info: PictureInfo; suspect: boolean }>

/** One run of one decoder, from its start to its end: pairs pictures with what the log says of them, and watches for silence. */
export class DecoderSession {
  readonly #assembler: FrameAssembler
  readonly #damage = new DamageTracker()
  readonly #budget = new LogBudget(logLinesPerSecond)
  /** The log and the pictures come by two pipes; either may be ahead. */
  readonly #sampled: Sampled[] = []
  readonly #pictures: ArrayBuffer[] = []
  readonly #lastLines: string[] = []
  #geometry: { info: PictureInfo; value: FrameGeometry } | undefined
  #process: DecoderProcess | undefined
  #watchdog: NodeJS.Timeout | undefined
  #lastFrameMs = nowMs()
  #frames = 0
  #silentMs: number | undefined
  #cpuSeconds = 0

  constructor(
    readonly camera: CameraConfig,
    readonly input: DecoderInput,
    readonly hwaccel: Hwaccel,
    readonly stamp: FrameStamp,
    readonly deps: SourceDeps,
    readonly callbacks: SessionCallbacks,
  ) {
    this.#assembler = new FrameAssembler(deps.pool, (rgbHwc) => {
      this.#pictures.push(rgbHwc)
      this.#pair()
    })
  }

  cpuSeconds(): number {
    this.#cpuSeconds = Math.max(this.#cpuSeconds, this.#process?.cpuSeconds() ?? 0)
    return this.#cpuSeconds
  }

  /** Resolves when the decoder is gone. Never rejects. */
  async run(signal: AbortSignal): Promise<SessionEnd> {
    const exit = await new Promise<DecoderExit>((resolve) => {
      const args = decoderArguments(this.camera, this.input, this.deps.format, this.hwaccel)
      DecoderProcess.start(args, this.#assembler, {
        onLine: (line) => this.#line(line),
        onExit: resolve,
      }).then(
        (process) => {
          this.#process = process
          this.#lastFrameMs = nowMs()
          this.#watch()
          if (signal.aborted) void process.stop()
        },
        (error: unknown) => {
          this.#remember(error instanceof Error ? error.message : String(error))
          resolve({ code: null, signal: null })
        },
      )
    })
    clearTimeout(this.#watchdog)
    this.#giveBuffersBack()
    return this.#end(exit)
  }

  async stop(): Promise<void> {
    this.cpuSeconds()
    await this.#process?.stop()
  }

  #end(exit: DecoderExit): SessionEnd {
    const silent = this.#silentMs
    const reason =
      silent === undefined ? failureReason(exit, this.#lastLines) : `no frame for ${Math.round(silent)} ms`
    return {
      reason,
      finished: silent === undefined && exit.code === 0 && this.#frames > 0,
      hwaccelFailed: this.hwaccel !== 'none' && this.#frames === 0 && isHwaccelFailure(this.#lastLines),
      cpuSeconds: this.#cpuSeconds,
    }
  }

  #line(line: string): void {
    const event = parseLogLine(line)
    switch (event?.kind) {
      case undefined:
        return
      case 'decoded':
        this.#damage.decoded(event.keyFrame)
        return
      case 'sampled':
        this.#sampled.push({ info: event.info, suspect: this.#damage.suspect })
        this.#pair()
        return
      case 'damage':
        this.#damage.damaged()
        this.#complaint(event.text, true)
        return
      case 'problem':
        this.#complaint(event.text, false)
        return
      default:
        event satisfies never
    }
  }

  #complaint(text: string, damage: boolean): void {
    this.#remember(text)
    const { pass, suppressed } = this.#budget.take(nowMs())
    if (suppressed > 0)
      this.deps.listener.warning('log_suppressed', `${suppressed} lines of the decoder held back`)
    if (!pass) return
    if (damage) this.deps.listener.warning('decode_error', text)
    else this.deps.log.warn({ decoder: text }, 'decoder says')
  }

  #remember(text: string): void {
    this.#lastLines.push(redactText(text))
    if (this.#lastLines.length > keptLines) this.#lastLines.shift()
  }

  #pair(): void {
    while (this.#pictures.length > 0 && this.#sampled.length > 0) {
      const rgbHwc = this.#pictures.shift()
      const sampled = this.#sampled.shift()
      if (rgbHwc && sampled) this.#emit(rgbHwc, sampled)
    }
  }

  #emit(rgbHwc: ArrayBuffer, { info, suspect }: Sampled): void {
    const { regionPx, letterbox } = this.#geometryOf(info)
    const { capturedAtMs, arrivedMs, jumped } = this.stamp.next(info.ptsMs)
    if (jumped)
      this.deps.listener.warning('pts_discontinuity', `stream clock jumped to ${Math.round(info.ptsMs)} ms`)
    this.#lastFrameMs = arrivedMs
    this.#frames += 1
    if (this.#frames === 1) this.callbacks.firstFrame()
    this.callbacks.frame()
    this.deps.listener.frame({
      cameraId: this.camera.id,
      seq: this.deps.nextSeq(),
      capturedAtMs,
      arrivedMs,
      ptsMs: info.ptsMs,
      quality: suspect ? 'suspect' : 'ok',
      source: { widthPx: info.widthPx, heightPx: info.heightPx },
      regionPx,
      letterbox,
      rgbHwc,
    })
  }

  /** A camera may change its resolution in mid-stream; ffmpeg's filters follow, and so does this. */
  #geometryOf(info: PictureInfo): FrameGeometry {
    const known = this.#geometry
    if (known?.info.widthPx === info.widthPx && known.info.heightPx === info.heightPx) return known.value
    const value = geometryOf(info, this.camera, this.deps.format)
    this.#geometry = { info, value }
    return value
  }

  /** Ends the decoder when no frame has come for the stall time; looks again when that could next be so. */
  #watch(): void {
    const allowedMs =
      this.#frames === 0 ? Math.max(firstFrameAtLeastMs, this.camera.stallTimeoutMs) : this.#stallMs()
    const silentMs = nowMs() - this.#lastFrameMs
    if (silentMs < allowedMs) {
      this.#watchdog = setTimeout(() => this.#watch(), Math.min(allowedMs - silentMs + 5, this.#stallMs()))
      return
    }
    this.#silentMs = silentMs
    this.callbacks.silent(silentMs)
    void this.stop()
  }

  /** A camera sampled once in ten seconds is not silent between two samples. */
  #stallMs(): number {
    return Math.max(this.camera.stallTimeoutMs, 2_000 / this.camera.sampleFps)
  }

  #giveBuffersBack(): void {
    this.#assembler.drop()
    for (const rgbHwc of this.#pictures.splice(0)) this.deps.pool.give(rgbHwc)
  }
}
