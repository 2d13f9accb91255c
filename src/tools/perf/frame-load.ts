import type { Tensor } from '../../tensors/tensor.js'
import type { FrameSource } from '../../vision/frame-source.js'
import type { Frame } from '../../vision/frame.js'
import type { InferLane, PreparedRequest } from '../client/infer-lane.js'
import { cameraOf, FrameCameras } from './clip-frames.js'
import type { Load, RequestEnded } from './load.js'
import { PerfSettingError } from './perf-errors.js'
import { frameTensor, type PictureInput } from './picture-tensors.js'

export type FrameLoadSettings = Readonly<{
  cameras: number
  fps: number
  /** A path, or the URL of a camera. */
  source: string
  picture: PictureInput
}>

/** One camera: what it decodes, the request under way, and the newest frame that waits for it. */
type Camera = {
  readonly lane: InferLane
  source: FrameSource | undefined
  busy: boolean
  waiting: Frame | undefined
}

/**
 * Cameras that are decoded here, whose frames go to a model as requests: one of a camera at a time, and of those that come meanwhile the
 * newest, as a live view wants it. Latency counts from when a frame has left the decoder, its wait and its way into a tensor included.
 */
export class FrameLoad implements Load {
  readonly #cameras: readonly Camera[]
  readonly #decoded: FrameCameras
  #dropped = 0
  #stopped = false

  /** @param prepare - makes the request of a frame. */
  constructor(
    readonly settings: FrameLoadSettings,
    lane: () => InferLane,
    readonly prepare: (tensor: Tensor) => PreparedRequest,
  ) {
    const { cameras, picture } = settings
    if (picture.pixels === undefined || picture.count !== 1)
      throw new PerfSettingError(
        'frames of cameras go to a model as pixels, one at a time',
        'Leave -b out, or name another model.',
      )
    this.#decoded = new FrameCameras(picture.pixels.size)
    this.#cameras = Array.from({ length: cameras }, () => ({
      lane: lane(),
      source: undefined,
      busy: false,
      waiting: undefined,
    }))
  }

  async start(ended: RequestEnded): Promise<void> {
    await Promise.all(this.#cameras.map((camera, index) => this.#open(camera, index, ended)))
  }

  takeDropped(): number {
    const dropped = this.#dropped
    this.#dropped = 0
    return dropped
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all(this.#cameras.flatMap(({ source }) => source?.stop() ?? []))
    for (const { lane } of this.#cameras) lane.close()
  }

  async #open(camera: Camera, index: number, ended: RequestEnded): Promise<void> {
    const { source: url, fps } = this.settings
    let failed: (reason: string) => void = () => undefined
    const live = new Promise<void>((resolve, reject) => {
      failed = (reason) =>
        reject(
          new PerfSettingError(
            `${url} gives no pictures: ${reason}`,
            'Name a video or a camera with --clip.',
          ),
        )
      void this.#decoded
        .open(cameraOf(`perf-${index + 1}`, url, fps), {
          frame: (frame) => {
            resolve()
            this.#frame(camera, frame, ended)
          },
          status: ({ state, reason }) => {
            if (state === 'failed' || state === 'backoff') failed(reason)
          },
          warning: () => undefined,
        })
        .then(async (source) => {
          camera.source = source
          if (source.status.state === 'failed') failed(source.status.reason)
          else if (this.#stopped) await source.stop()
          else source.start()
        }, reject)
    })
    await live
  }

  #frame(camera: Camera, frame: Frame, ended: RequestEnded): void {
    if (!camera.busy) return this.#send(camera, frame, ended)
    if (camera.waiting !== undefined) {
      this.#dropped += 1
      this.#decoded.pool.give(camera.waiting.rgbHwc)
    }
    camera.waiting = frame
  }

  #send(camera: Camera, { arrivedMs, rgbHwc }: Frame, ended: RequestEnded): void {
    if (this.#stopped) return
    camera.busy = true
    const request = this.prepare(frameTensor(this.settings.picture, [new Uint8Array(rgbHwc)]))
    this.#decoded.pool.give(rgbHwc)
    camera.lane.send(request, false, (outcome) => {
      if (this.#stopped) return
      ended(Math.min(arrivedMs, outcome.sentMs), outcome)
      camera.busy = false
      const next = camera.waiting
      camera.waiting = undefined
      if (next !== undefined) this.#send(camera, next, ended)
    })
  }
}
