import type { DetectorInfo, DetectorResult } from '../../detector/camera-detector.js'
import type { Log } from '../../lifecycle/log.js'
import type { Frame, FrameFormat } from '../../vision/frame.js'
import type { CameraUnit } from './camera-unit.js'
import type { HeldFrame } from './held-frame.js'
import { encodePicture } from './picture.js'
import type { EngineOutput } from './protocol.js'
import { resultOf } from './result-of.js'

/** Bytes that control has not read, above which no pictures are made for it. */
const mostUnreadBytes = 1024 ** 2

/** Sends results on their way, in the order of their frames, with pictures where somebody looks. */
export class ResultOutlet {
  /** Cameras whose pictures somebody looks at; `*` is all. */
  watched: ReadonlySet<string> = new Set()

  constructor(
    readonly out: EngineOutput,
    readonly log: Log,
  ) {}

  /** @param resultOfSeq - the frame whose result it is, if that is an older one. */
  leave(
    unit: CameraUnit,
    frame: Frame,
    result: DetectorResult,
    { model, format }: Pick<DetectorInfo, 'model' | 'format'>,
    resultOfSeq?: number,
  ): void {
    const held = unit.keep(frame, format, result.detections)
    const left = resultOf(unit, frame, result, model, resultOfSeq)
    const watched = this.#isWatched(frame.cameraId)
    if (!watched && unit.encoding === 0) return this.out.sendResult(left)
    const picture = watched && unit.encoding === 0 ? this.#picture(unit, held, format) : undefined
    unit.outbox = unit.outbox.then(async () => {
      const encoded = await picture
      this.out.sendResult(encoded ? { ...left, picture: encoded } : left)
    })
  }

  #isWatched(cameraId: string): boolean {
    if (this.out.unsentBytes > mostUnreadBytes) return false
    return this.watched.has('*') || this.watched.has(cameraId)
  }

  /** Encodes beside the loop; a picture that fails is left out, its result is not. */
  async #picture(unit: CameraUnit, held: HeldFrame, format: FrameFormat): Promise<Buffer | undefined> {
    held.pin()
    unit.encoding += 1
    try {
      return await encodePicture(held.frame, format)
    } catch (error) {
      this.log.warn({ cameraId: unit.camera.id, err: error }, 'live picture could not be encoded')
      return undefined
    } finally {
      unit.encoding -= 1
      held.unpin()
    }
  }
}
