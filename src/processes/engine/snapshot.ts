import { NotFoundError } from '../../cameras/engine-errors.js'
import type { SnapshotFacts } from '../../cameras/snapshot-facts.js'
import { wallMs } from '../../lifecycle/clock.js'
import type { FrameFormat } from '../../vision/frame.js'
import type { WholePicture } from '../../sources/whole-picture.js'
import type { CameraUnit } from './camera-unit.js'
import type { FoundInStill } from './own-snapshot.js'
import { encodeMainSnapshot, encodeSnapshot, haveSameShape, sizeOfSnapshot } from './picture.js'

/** A key frame that came so long before the last analysed picture shows another scene. */
const oldestMs = 15_000

export type CameraSnapshot = SnapshotFacts & Readonly<{ jpeg: Uint8Array }>

export type SnapshotWishes = Readonly<{
  /** With boxes. */
  overlay: boolean
  /** `false`: as the model saw it. */
  own: boolean
  /** That the camera's frames have now. */
  format: FrameFormat
  /** Analyses a whole picture by itself; undefined where that could not be done. */
  detect(jpeg: Uint8Array): Promise<FoundInStill | undefined>
}>

/**
 * JPEG of what a camera sees, at its own resolution where the picture it sent is at hand: of its main stream where it has one beside that
 * which is analysed, else the newest still or key frame. Else the last analysed picture.
 *
 * Boxes are those of that very picture, which is analysed by itself for them; of a main stream those of the last result, on the analysed
 * picture where the streams show different parts.
 *
 * @throws NotFoundError while there is no picture, MainPictureError
 */
export async function snapshotOf(unit: CameraUnit, wishes: SnapshotWishes): Promise<CameraSnapshot> {
  const { overlay, own, format } = wishes
  const main = own ? await unit.main?.take() : undefined
  const { last } = unit
  const boxes = overlay ? last : undefined
  // Where the streams show different parts, nobody knows where a box is in the other.
  if (main && (boxes === undefined || haveSameShape(main.size, boxes.held.frame.source)))
    return mainSnapshot(unit, main, format, boxes && { ...boxes, frame: boxes.held.frame })
  if (!last)
    throw new NotFoundError(
      `camera "${unit.camera.id}" has no picture yet`,
      'Try again once the camera is live.',
    )
  return (
    (own && unit.main === undefined ? await newestOwn(unit, wishes) : undefined) ?? analysed(unit, overlay)
  )
}

/** @returns `undefined` where the analysed picture is to be given. */
async function newestOwn(
  unit: CameraUnit,
  { overlay, format, detect }: SnapshotWishes,
): Promise<CameraSnapshot | undefined> {
  const sent = unit.source?.sentPicture?.()
  const analysedAtMs = unit.last?.held.frame.capturedAtMs ?? 0
  if (sent === undefined || sent.capturedAtMs < analysedAtMs - oldestMs) return undefined
  const { camera, own } = unit
  const made = own.of(sent, camera)
  const picture = await made.whole
  if (picture === undefined) return undefined
  const found = overlay ? await made.found(picture, detect) : undefined
  if (overlay && found === undefined) return undefined
  const jpeg = await made.drawn(overlay, () => encodeMainSnapshot(picture, camera, format, found))
  const { capturedAtMs } = sent
  return { jpeg, picture: 'own', ...sizeOfSnapshot(picture, camera, format), capturedAtMs }
}

async function mainSnapshot(
  { camera }: CameraUnit,
  picture: WholePicture,
  format: FrameFormat,
  found: FoundInStill | undefined,
): Promise<CameraSnapshot> {
  const jpeg = await encodeMainSnapshot(picture, camera, format, found)
  return { jpeg, picture: 'own', ...sizeOfSnapshot(picture, camera, format), capturedAtMs: wallMs() }
}

async function analysed(unit: CameraUnit, overlay: boolean): Promise<CameraSnapshot> {
  const { last } = unit
  if (!last) throw new NotFoundError(`camera "${unit.camera.id}" has no picture`, 'Ask again.')
  const { held, detections } = last
  held.pin()
  try {
    const { jpeg, size } = await encodeSnapshot(held.frame, held.format, overlay ? detections : undefined)
    return { jpeg, picture: 'analysed', ...size, capturedAtMs: held.frame.capturedAtMs }
  } finally {
    held.unpin()
  }
}
