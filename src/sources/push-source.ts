import type { CameraConfig } from '../config/camera.js'
import { GantryError } from '../errors.js'
import type { CameraStatus } from '../vision/camera-state.js'
import type { FrameSource, SentPictureSource } from '../vision/frame-source.js'
import type { SourceDeps } from './source-deps.js'
import { DecoderMessages } from './decoder-messages.js'
import { StatusTeller } from './status-teller.js'
import { decodeStill } from './still.js'
import { FrameStamper } from './frame-stamper.js'
import { nowMs, wallMs } from '../lifecycle/clock.js'
import { RepeatedLines } from '../lifecycle/repeated-lines.js'
import { PictureRhythm } from './picture-rhythm.js'
import { Watchdog } from './watchdog.js'

/** Pictures of one camera that may wait for decoding. */
const mostWaiting = 4

class PushQueueFullError extends GantryError {
  readonly code = 'GANTRY_QUEUE_FULL'
  readonly hint = 'Send pictures more slowly, or wait for each answer before the next.'
  override readonly retryable = true
  constructor(cameraId: string) {
    super(`camera "${cameraId}" has ${mostWaiting} pictures waiting already`)
    this.name = 'PushQueueFullError'
  }
}

/** A camera that sends its pictures itself, one HTTP request each. */
export class PushSource implements FrameSource {
  readonly #teller: StatusTeller
  readonly #stamper: FrameStamper
  readonly #rhythm: PictureRhythm
  readonly #watchdog = new Watchdog(
    (silentMs) => this.#silent(silentMs),
    (silentMs) => this.#rhythm.silenceMs(nowMs(), undefined) - silentMs,
  )
  readonly #messages: DecoderMessages
  #queue: Promise<unknown> = Promise.resolve()
  #waiting = 0
  #stopped = false
  #unbelieved = false
  #last: SentPictureSource | undefined

  constructor(
    readonly camera: CameraConfig,
    readonly deps: SourceDeps,
  ) {
    this.#stamper = new FrameStamper(camera, deps.format, deps.nextSeq)
    const { log, listener } = deps
    const repeated = new RepeatedLines()
    this.#messages = new DecoderMessages({ log, listener, repeated, clean: (text) => text })
    this.#rhythm = new PictureRhythm({ ...camera, sampleFps: Infinity })
    this.#teller = new StatusTeller('connecting', '', (status) => deps.listener.status(status))
  }

  get status(): CameraStatus {
    return this.#teller.status
  }

  sentPicture(): SentPictureSource | undefined {
    return this.#last
  }

  decoderCpuSeconds(): number {
    return 0
  }

  start(): void {
    this.#teller.set({ state: 'connecting', reason: 'waiting for the first picture', attempts: 1 })
  }

  /**
   * Takes one JPEG or PNG; pictures are decoded one after another, in the order they come. A damaged one of which anything can be decoded
   * is suspect.
   *
   * @throws ImageInvalidError `GANTRY_IMAGE_INVALID`; ImageTooLargeError `GANTRY_TOO_LARGE`; PushQueueFullError `GANTRY_QUEUE_FULL`,
   *   retryable.
   */
  async push(image: Uint8Array): Promise<{ seq: number }> {
    if (this.#waiting >= mostWaiting || this.#stopped) throw new PushQueueFullError(this.camera.id)
    this.#waiting += 1
    const work = this.#queue.then(() => this.#accept(image))
    this.#queue = work.catch(() => undefined)
    try {
      return await work
    } finally {
      this.#waiting -= 1
    }
  }

  /** Takes no more pictures; those it has taken still become frames. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#watchdog.disarm()
    await this.#queue
  }

  async #accept(image: Uint8Array): Promise<{ seq: number }> {
    const still = await decodeStill(image, this.camera, this.deps, { damaged: 'shown' })
    const { rgbHwc, sent, unbelieved, damage } = still
    if (damage !== undefined) this.#messages.damage(damage)
    if (unbelieved !== undefined && !this.#unbelieved) this.deps.listener.warning('pixel_aspect', unbelieved)
    this.#unbelieved = unbelieved !== undefined
    this.#rhythm.picture(nowMs(), null)
    if (!this.#stopped) this.#watchdog.arm(this.#rhythm.leastMs)
    this.#teller.set({ state: 'live', reason: '', attempts: 1 })
    const info = { ptsMs: null, sent, suspect: damage !== undefined }
    const frame = this.#stamper.stamp(rgbHwc, info, { arrivedMs: nowMs(), wallMs: wallMs() })
    this.#last = { kind: 'still', bytes: image, capturedAtMs: frame.capturedAtMs }
    this.deps.listener.frame(frame)
    return { seq: frame.seq }
  }

  #silent(silentMs: number): void {
    const reason = `no picture for ${Math.round(silentMs)} ms`
    this.#teller.set({ state: 'stalled', reason, attempts: 1 })
  }
}
