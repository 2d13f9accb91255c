import { NotFoundError } from '../../cameras/engine-errors.js'
import type { FrameFormat } from '../../vision/frame.js'
import type { CameraUnit } from './camera-unit.js'
import { encodeMainSnapshot, encodeSnapshot, haveSameShape } from './picture.js'

/**
 * JPEG of what a camera sees: of its main stream where it has one beside that which is analysed, else the last analysed picture.
 *
 * @param format - that the camera's frames have now.
 * @param overlay - with the boxes of the last result, on the analysed picture where the streams show different parts.
 * @throws NotFoundError while there is no picture, MainPictureError
 */
export async function snapshotOf(
  unit: CameraUnit,
  format: FrameFormat,
  overlay: boolean,
): Promise<Uint8Array> {
  const picture = await unit.main?.take()
  const { last } = unit
  const boxes = overlay ? last : undefined
  // Where the streams show different parts, nobody knows where a box is in the other.
  if (picture && (boxes === undefined || haveSameShape(picture.size, boxes.held.frame.source)))
    return encodeMainSnapshot(picture, unit.camera, format, boxes)
  if (!last)
    throw new NotFoundError(
      `camera "${unit.camera.id}" has no picture yet`,
      'Try again once the camera is live.',
    )
  last.held.pin()
  try {
    return await encodeSnapshot(last.held.frame, last.held.format, boxes?.detections)
  } finally {
    last.held.unpin()
  }
}
