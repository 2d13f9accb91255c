import type { CameraConfig } from '../config/camera.js'
import type { Frame, FrameFormat } from '../vision/frame.js'
import { geometryOf, type PictureFit } from './geometry.js'
import type { PictureInfo } from './picture-pairing.js'
import type { SentPicture } from './pixel-aspect.js'

/** How much further than the clock stream time may go before it counts as a jump; network bursts only ever fall behind. */
const jumpMs = 2_000

export type StampTimes = Readonly<{ arrivedMs: number; wallMs: number }>

/** Makes frames out of pictures: number, times, geometry. One for each camera, for its whole life. */
export class FrameStamper {
  #lastPtsMs: number | null = null
  #beganMs: number | undefined
  #lastArrivedMs = 0
  #lastCapturedAtMs = 0
  #geometry: Readonly<{ sent: SentPicture; value: PictureFit }> | undefined

  constructor(
    readonly camera: CameraConfig,
    readonly format: FrameFormat,
    readonly nextSeq: () => number,
  ) {}

  /** A new session starts its own time; the first picture of it is no jump. */
  newSession(): void {
    this.#lastPtsMs = null
  }

  /**
   * How far stream time jumped against the clock, in ms: negative when it went back. Call before {@link stamp}.
   *
   * @returns undefined when it went on as it should.
   */
  jumpOf(info: PictureInfo, arrivedMs: number): number | undefined {
    if (info.ptsMs === null || this.#lastPtsMs === null) return undefined
    const stepMs = info.ptsMs - this.#lastPtsMs
    const clockMs = arrivedMs - this.#lastArrivedMs
    return stepMs < 0 || stepMs > clockMs + jumpMs ? stepMs : undefined
  }

  stamp(rgbHwc: ArrayBuffer, info: PictureInfo, times: StampTimes): Frame {
    this.#beganMs ??= times.arrivedMs
    this.#lastPtsMs = info.ptsMs
    this.#lastArrivedMs = times.arrivedMs
    // Wall time may be set back; what a reader sees never goes back.
    this.#lastCapturedAtMs = Math.max(this.#lastCapturedAtMs, times.wallMs)
    const { source, regionPx, letterbox } = this.#geometryOf(info.sent)
    return {
      cameraId: this.camera.id,
      seq: this.nextSeq(),
      capturedAtMs: this.#lastCapturedAtMs,
      arrivedMs: times.arrivedMs,
      ptsMs: Math.round((info.ptsMs ?? times.arrivedMs - this.#beganMs) * 1e3) / 1e3,
      quality: info.suspect ? 'suspect' : 'ok',
      source,
      regionPx,
      letterbox,
      rgbHwc,
    }
  }

  /** A camera may change its resolution and the shape of its pixels in mid-stream; ffmpeg's filters follow, and so does this. */
  #geometryOf(sent: SentPicture): PictureFit {
    const known = this.#geometry
    if (
      known?.sent.widthPx === sent.widthPx &&
      known.sent.heightPx === sent.heightPx &&
      known.sent.pixelAspect === sent.pixelAspect
    )
      return known.value
    const value = geometryOf(sent, this.camera, this.format)
    this.#geometry = { sent, value }
    return value
  }
}
