import type { CameraConfig } from '../config/camera.js'
import { GantryError } from '../errors.js'
import type { CameraStatus } from '../frames/camera-state.js'
import type { FrameSource } from '../frames/frame-source.js'
import type { SourceDeps } from './source-deps.js'
import { StatusTeller } from './status-teller.js'
import { StillEmitter } from './still-emitter.js'

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
  readonly #emitter: StillEmitter
  #queue: Promise<unknown> = Promise.resolve()
  #waiting = 0
  #silence: NodeJS.Timeout | undefined
  #stopped = false

  constructor(
    readonly camera: CameraConfig,
    readonly deps: SourceDeps,
  ) {
    this.#emitter = new StillEmitter(camera, deps)
    this.#teller = new StatusTeller('connecting', '', (status) => deps.listener.status(status))
  }

  get status(): CameraStatus {
    return this.#teller.status
  }

  decoderCpuSeconds(): number {
    return 0
  }

  start(): void {
    this.#teller.set({ state: 'connecting', reason: 'waiting for the first picture', attempts: 1 })
  }

  /**
   * Takes one JPEG, PNG or WebP; pictures are decoded in the order they come.
   *
   * @throws ImageInvalidError `GANTRY_IMAGE_INVALID`; PushQueueFullError `GANTRY_QUEUE_FULL`, retryable.
   */
  async push(image: Uint8Array): Promise<{ seq: number }> {
    if (this.#waiting >= mostWaiting || this.#stopped) throw new PushQueueFullError(this.camera.id)
    this.#waiting += 1
    const work = this.#queue.then(() => this.#emitter.emit(image))
    this.#queue = work.catch(() => undefined)
    try {
      const seq = await work
      this.#heard()
      return { seq }
    } finally {
      this.#waiting -= 1
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#silence)
    await this.#queue
  }

  #heard(): void {
    if (this.#stopped) return
    clearTimeout(this.#silence)
    this.#teller.set({ state: 'live', reason: '', attempts: 1 })
    const { stallTimeoutMs } = this.camera
    this.#silence = setTimeout(() => {
      this.#teller.set({ state: 'stalled', reason: `no picture for ${stallTimeoutMs} ms`, attempts: 1 })
    }, stallTimeoutMs)
  }
}
