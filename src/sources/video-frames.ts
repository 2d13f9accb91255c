import { cameraSchema } from '../config/camera.js'
import { nowMs } from '../lifecycle/clock.js'
import { systemLimit } from '../lifecycle/system-limit.js'
import type { FrameQuality } from '../vision/frame.js'
import { FramePool } from '../vision/frame-pool.js'
import { scaledSizePx, type SizePx } from '../vision/letterbox.js'
import { channelClosed, openByteChannel } from './byte-channel.js'
import { parseDecoderLine } from './decoder-log.js'
import { inSoftware } from './decode-ways.js'
import { DecoderProcess, type ProcessEnd } from './decoder-process.js'
import { whyEnded } from './failure-reason.js'
import { decoderArguments } from './ffmpeg-command.js'
import { probeVideo, type VideoFacts } from './probe-video.js'
import { FrameAssembler } from './frame-assembler.js'
import { PicturePairing, type PictureInfo } from './picture-pairing.js'
import { shownSize, toldAspect } from './pixel-aspect.js'
import { SentPictures } from './sent-pictures.js'
import { reorderMs, SuspectTracker } from './suspect-tracker.js'
import { VideoUnreadableError } from './video-error.js'

/** Frames that wait for their reader; then ffmpeg does. */
const mostWaiting = 2
/** Last lines of ffmpeg that are kept for the error. */
const mostErrors = 30
/** Frames that would be larger are scaled down to this. */
const largest: SizePx = { widthPx: 8_192, heightPx: 8_192 }
/** Where nothing holds it up, a newer ffmpeg (9) decodes so many pictures ahead of those that it tells of. */
const decodedAhead = 10
/** Exit code of an ffmpeg that was told to end. */
const endedBySignal = 255

/** One frame of a video file. */
export type VideoFrame = Readonly<{
  /** Counts from 1 among the frames that are sampled: the same each time that the file is read. */
  frame: number
  /** Presentation time; null where the file has none. */
  timeMs: number | null
  quality: FrameQuality
  /** Of the picture as it is shown, before it was scaled. */
  source: SizePx
  /** uint8 `[heightPx, widthPx, 3]`, RGB, of {@link VideoFrames.size}. It belongs to whoever takes the frame. */
  rgbHwc: Uint8Array
}>

export type VideoOptions = Readonly<{
  /** Frames per second of the video that are wanted; all that there are, where it has fewer. */
  sampleFps: number
  /** Frames are scaled down to fit into this, as those of cameras are for their model; absent: they come as they are shown, at most 8192 x 8192. */
  within?: SizePx | undefined
  signal: AbortSignal
}>

/** Frames of a video file, read once from its beginning, as fast as they are taken: few are held. */
export class VideoFrames {
  private constructor(
    readonly path: string,
    /** Of every frame; one whose picture has another shape is padded. */
    readonly size: SizePx,
    /** Length of the video, where the file tells it. */
    readonly seconds: number | undefined,
    /** Pictures a second of the video, where the file tells it. */
    readonly fps: number | undefined,
    readonly options: VideoOptions,
  ) {}

  /** @throws VideoUnreadableError where it is no video, or ffprobe cannot read it */
  static async open(path: string, options: VideoOptions): Promise<VideoFrames> {
    const facts = await probeVideo(path).catch((error: unknown) => {
      const limit = systemLimit(error)
      throw new VideoUnreadableError(limit?.reason ?? (error as Error).message, limit?.hint)
    })
    if (facts === undefined) throw new VideoUnreadableError('it holds no video')
    const shown = sizeShown(facts)
    const { within = largest } = options
    const fits = shown.widthPx <= within.widthPx && shown.heightPx <= within.heightPx
    const size = fits ? shown : scaledSizePx(shown, within)
    return new VideoFrames(path, size, facts.seconds, facts.fps, options)
  }

  /**
   * Ends early, without an error, when the signal aborts. One walk at a time.
   *
   * @throws VideoUnreadableError after the last frame that could be read
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<VideoFrame, void> {
    const reading = new Reading(this)
    try {
      yield* reading.frames()
    } finally {
      await reading.stop()
    }
  }
}

function sizeShown({ widthPx, heightPx, pixelAspect, turned }: VideoFacts): SizePx {
  if (widthPx < 1 || heightPx < 1) throw new VideoUnreadableError('it has no picture size')
  const sent = turned ? { widthPx: heightPx, heightPx: widthPx } : { widthPx, heightPx }
  const told = toldAspect(sent, {}, turned ? 1 / pixelAspect : pixelAspect)
  return shownSize({ ...sent, pixelAspect: told.pixelAspect })
}

/** One run of ffmpeg over a file. */
class Reading {
  readonly #waiting: VideoFrame[] = []
  readonly #suspects: SuspectTracker
  readonly #pairing: PicturePairing
  readonly #assembler: FrameAssembler
  readonly #errors: string[] = []
  #wake: () => void = () => undefined
  readonly #sent = new SentPictures({}, () => undefined)
  #keyMs: number | null | undefined
  #frames = 0
  #readEnd: Awaited<ReturnType<typeof openByteChannel>>['readEnd'] | undefined
  #process: DecoderProcess | undefined
  #ended: ProcessEnd | undefined

  constructor(readonly video: VideoFrames) {
    const { widthPx, heightPx } = video.size
    this.#suspects = new SuspectTracker(Math.max(reorderMs, (decodedAhead * 1_000) / (video.fps ?? 25)))
    this.#pairing = new PicturePairing((rgbHwc, info) => this.#frame(rgbHwc, info))
    // Frames go away with whoever takes them, so that the pool only makes buffers.
    const pool = new FramePool(widthPx * heightPx * 3, 0)
    this.#assembler = new FrameAssembler(pool, (rgbHwc) => this.#pairing.pixels(rgbHwc))
  }

  async *frames(): AsyncGenerator<VideoFrame, void> {
    const { signal } = this.video.options
    if (signal.aborted) return
    const stop = () => {
      this.#process?.stop()
      this.#wake()
    }
    signal.addEventListener('abort', stop, { once: true })
    try {
      await this.#start()
      for (;;) {
        const frame = this.#waiting.shift()
        if (signal.aborted) return
        if (frame !== undefined) {
          if (!this.#full) this.#readEnd?.resume()
          yield frame
        } else if (this.#ended !== undefined) return this.#conclude(this.#ended)
        else await new Promise<void>((resolve) => (this.#wake = resolve))
      }
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }

  /** Idempotent, never rejects. */
  async stop(): Promise<void> {
    this.#process?.kill()
    this.#readEnd?.destroy()
    await this.#process?.ended
  }

  async #start(): Promise<void> {
    const { path, size, options } = this.video
    const camera = cameraSchema.parse({ id: 'video', url: 'file', sampleFps: 1 })
    const channel = await openByteChannel({
      space: () => this.#assembler.space(),
      filled: (bytes) => {
        this.#assembler.filled(bytes)
        return !this.#full
      },
    }).catch((error: unknown) => {
      const limit = systemLimit(error)
      throw limit === undefined ? error : new VideoUnreadableError(limit.reason, limit.hint)
    })
    this.#readEnd = channel.readEnd
    const drained = channelClosed(channel.readEnd)
    try {
      this.#process = new DecoderProcess(
        decoderArguments(
          { ...camera, sampleFps: options.sampleFps },
          { kind: 'file', path },
          { input: size, align: 'top-left' },
          inSoftware,
          { pace: 'reader' },
        ),
        channel.writeEnd,
        (text) => this.#line(text),
      )
    } finally {
      channel.writeEnd.destroy()
    }
    void Promise.all([this.#process.ended, drained]).then(([end]) => {
      this.#ended = end
      this.#wake()
    })
  }

  get #full(): boolean {
    return this.#pairing.holding || this.#waiting.length >= mostWaiting
  }

  #line(text: string): void {
    const line = parseDecoderLine(text)
    switch (line.kind) {
      case 'picture':
        return this.#picture(line.ptsMs)
      case 'size':
        return this.#sent.size(line)
      case 'pixels':
        return this.#sent.follow(line.aspect)
      case 'key':
        this.#keyMs = line.ptsMs
        return this.#suspects.key(line.ptsMs, nowMs())
      case 'damage':
        this.#suspects.damage(line.text, nowMs())
        return
      case 'note':
        this.#suspects.note(line.text)
        return
      case 'message':
        // Damage to pictures does not end the reading; this may be why it ended.
        if (line.level === 'error' && this.#errors.push(text) > mostErrors) this.#errors.shift()
        return
      case 'input':
        return this.#suspects.opened()
      case 'length':
      case 'stream':
      case 'chosen':
      case 'noHardware':
      case 'unbelieved':
      case 'chatter':
        return
      default:
        line satisfies never
    }
  }

  #picture(ptsMs: number | null): void {
    const sent = this.#sent.now
    if (sent === undefined) return
    if (ptsMs !== this.#keyMs) this.#suspects.picture(ptsMs)
    const info = { ptsMs, sent, suspect: this.#suspects.suspect }
    if (this.#pairing.info(info) && !this.#full) this.#readEnd?.resume()
  }

  #frame(rgbHwc: ArrayBuffer, { ptsMs, sent, suspect }: PictureInfo): void {
    this.#frames += 1
    const quality = suspect ? 'suspect' : 'ok'
    const timeMs = ptsMs === null ? null : Math.round(ptsMs * 1e3) / 1e3
    const source = shownSize(sent)
    this.#waiting.push({ frame: this.#frames, timeMs, quality, source, rgbHwc: new Uint8Array(rgbHwc) })
    this.#wake()
  }

  #conclude(end: ProcessEnd): void {
    const { unstarted, exitCode = null } = end
    if (unstarted !== undefined || this.#errors.length > 0) {
      const { reason, systemHint } = whyEnded({ ...end, tail: this.#errors }, undefined, true)
      throw new VideoUnreadableError(reason, systemHint)
    }
    if (exitCode === null || exitCode === endedBySignal)
      throw new VideoUnreadableError(
        'ffmpeg was ended before the end of the file',
        'See in dmesg whether the kernel ended it for want of memory.',
      )
    if (exitCode !== 0)
      throw new VideoUnreadableError(`ffmpeg ended with code ${exitCode}: most of it is damaged`)
    if (this.#frames === 0) throw new VideoUnreadableError('it has no frame')
  }
}
