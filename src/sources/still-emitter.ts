import type { CameraConfig } from '../config/camera.js'
import { decodeStill } from './still.js'
import { FrameStamp } from './frame-stamp.js'
import type { SourceDeps } from './source-deps.js'
import { nowMs } from '../lifecycle/clock.js'

/** Turns still pictures of one camera into frames. */
export class StillEmitter {
  readonly #stamp = new FrameStamp()
  readonly #startedMs = nowMs()

  constructor(
    readonly camera: CameraConfig,
    readonly deps: SourceDeps,
  ) {}

  /**
   * Decodes and hands on.
   *
   * @returns the frame's number.
   * @throws ImageInvalidError `GANTRY_IMAGE_INVALID`
   */
  async emit(image: Uint8Array | string): Promise<number> {
    const { pool, format, listener, nextSeq } = this.deps
    const rgbHwc = pool.take()
    try {
      const { source, geometry } = await decodeStill(image, this.camera, format, rgbHwc)
      const ptsMs = nowMs() - this.#startedMs
      const { capturedAtMs, arrivedMs } = this.#stamp.next(ptsMs)
      const seq = nextSeq()
      const { regionPx, letterbox } = geometry
      listener.frame({
        cameraId: this.camera.id,
        seq,
        capturedAtMs,
        arrivedMs,
        ptsMs,
        quality: 'ok',
        source,
        regionPx,
        letterbox,
        rgbHwc,
      })
      return seq
    } catch (error) {
      pool.give(rgbHwc)
      throw error
    }
  }
}
