import type { CameraConfig } from '../../config/camera.js'
import { nowMs, wallMs } from '../../lifecycle/clock.js'
import { atMost } from '../../lifecycle/delay.js'
import { geometryOf } from '../../sources/geometry.js'
import { decodeStill } from '../../sources/still.js'
import type { Detection } from '../../vision/detection.js'
import type { Frame } from '../../vision/frame.js'
import type { EngineModel } from './engine-model.js'
import type { FoundInStill } from './own-snapshot.js'

/** Longest that a picture waits for the model, beside the frames of cameras. */
const atMostMs = 5_000

/**
 * Analyses single pictures beside the frames of cameras: they take their turn as those of one more camera, and are nobody's result. They are
 * not in the accounts of frames.
 */
export class StillAnalysis {
  readonly #waiting = new Map<string, (detections: readonly Detection[] | undefined) => void>()
  #count = 0

  /** @param jpeg - upright, with square pixels. @returns `undefined` where the model did not take it in time. */
  async detect(
    model: EngineModel,
    camera: CameraConfig,
    jpeg: Uint8Array,
  ): Promise<FoundInStill | undefined> {
    const { format } = model.info
    const cut = { region: camera.region, maxWidthPx: camera.maxWidthPx }
    const { rgbHwc, sent } = await decodeStill(jpeg, cut, { format, pool: model.pool })
    const { source, regionPx, letterbox } = geometryOf(sent, cut, format)
    // No camera has such a name.
    const cameraId = `${camera.id} still ${(this.#count += 1)}`
    const times = { capturedAtMs: wallMs(), arrivedMs: nowMs(), ptsMs: 0 }
    const frame: Frame = {
      ...{ cameraId, seq: 1, ...times, quality: 'ok', source, regionPx, letterbox, rgbHwc },
    }
    const result = new Promise<readonly Detection[] | undefined>((resolve) =>
      this.#waiting.set(cameraId, resolve),
    )
    model.offer(frame)
    const detections = await atMost(atMostMs, result)
    this.#waiting.delete(cameraId)
    model.detector.removeCamera(cameraId)
    // Its buffer may be another frame's by now: nobody looks at it.
    return detections && { frame, detections }
  }

  /** A frame has ended. @returns whether it was one of these. */
  ended({ cameraId }: Frame, detections?: readonly Detection[]): boolean {
    const tell = this.#waiting.get(cameraId)
    tell?.(detections)
    return tell !== undefined
  }
}
