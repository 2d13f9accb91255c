import type { Sharp } from 'sharp'
import type { Detection } from '../../vision/detection.js'
import { pictureMessage } from '../../messages/picture-message.js'
import type { PictureHeader } from '../../messages/stream-protocol.js'
import type { Frame, FrameFormat } from '../../vision/frame.js'
import type { SizePx } from '../../vision/letterbox.js'
import type { CameraConfig } from '../../config/camera.js'
import { geometryOf } from '../../sources/geometry.js'
import type { WholePicture } from '../../sources/whole-picture.js'
import { overlaySvg } from './overlay.js'
import { pictureIn } from './refit.js'

const liveQuality = 70
const snapshotQuality = 88

/** The picture of a frame without its padding, as a sharp pipeline. Reads the frame's buffer until the pipeline has ended. */
async function unpadded(
  frame: Frame,
  format: FrameFormat,
): Promise<Readonly<{ pipeline: Sharp; size: SizePx }>> {
  const { default: sharp } = await import('../../lifecycle/sharp.js')
  const size = pictureIn(frame, format)
  const pipeline = sharp(Buffer.from(frame.rgbHwc), {
    raw: { width: format.input.widthPx, height: format.input.heightPx, channels: 3 },
  }).extract({
    left: frame.letterbox.padXPx,
    top: frame.letterbox.padYPx,
    width: size.widthPx,
    height: size.heightPx,
  })
  return { pipeline, size }
}

/**
 * Picture message of an analysed frame for live viewing, at the size the model saw it.
 *
 * The caller keeps the frame's buffer until the promise settles.
 */
export async function encodePicture(frame: Frame, format: FrameFormat): Promise<Buffer> {
  const { pipeline, size } = await unpadded(frame, format)
  const jpeg = await pipeline.jpeg({ quality: liveQuality }).toBuffer()
  const header: PictureHeader = {
    type: 'picture',
    cameraId: frame.cameraId,
    seq: frame.seq,
    capturedAt: new Date(frame.capturedAtMs).toISOString(),
    widthPx: size.widthPx,
    heightPx: size.heightPx,
    sourceWidthPx: frame.regionPx.widthPx,
    sourceHeightPx: frame.regionPx.heightPx,
    sourceXPx: frame.regionPx.x,
    sourceYPx: frame.regionPx.y,
    mime: 'image/jpeg',
  }
  return pictureMessage(header, jpeg)
}

/** JPEG of an analysed frame for keeping; with `detections`, their boxes are drawn into it. */
export async function encodeSnapshot(
  frame: Frame,
  format: FrameFormat,
  detections: readonly Detection[] | undefined,
): Promise<Readonly<{ jpeg: Uint8Array; size: SizePx }>> {
  const { pipeline, size } = await unpadded(frame, format)
  const drawn =
    detections === undefined
      ? pipeline
      : pipeline.composite([{ input: Buffer.from(overlaySvg(frame, detections, size)), left: 0, top: 0 }])
  return { jpeg: await drawn.jpeg({ quality: snapshotQuality }).toBuffer(), size }
}

/** What two streams of a camera may differ by when they show the same: sizes are whole, and encoders want multiples of 8 or 16. */
const shapeTolerance = 0.03

/** Whether two pictures are as wide for their height, so that a place in one is the same place in the other. */
export function haveSameShape(one: SizePx, other: SizePx): boolean {
  const ratio = (one.widthPx * other.heightPx) / (one.heightPx * other.widthPx)
  return Math.abs(ratio - 1) <= shapeTolerance
}

/**
 * JPEG of a whole picture of a camera, as much of it as is analysed.
 *
 * @param found - what was found in it, or last in another stream of the camera, to be drawn where it is in this one.
 */
export async function encodeMainSnapshot(
  picture: WholePicture,
  camera: CameraConfig,
  format: FrameFormat,
  found?: Readonly<{ frame: Frame; detections: readonly Detection[] }>,
): Promise<Uint8Array> {
  if (camera.region === undefined && found === undefined) return picture.jpeg
  const { x, y, ...size } = geometryOf(picture.size, camera, format).regionPx
  const cut = { left: x, top: y, width: size.widthPx, height: size.heightPx }
  const { default: sharp } = await import('../../lifecycle/sharp.js')
  const marks = found && overlaySvg(found.frame, found.detections, size)
  return sharp(picture.jpeg)
    .extract(cut)
    .composite(marks === undefined ? [] : [{ input: Buffer.from(marks), left: 0, top: 0 }])
    .jpeg({ quality: snapshotQuality })
    .toBuffer()
}

/** Size of what {@link encodeMainSnapshot} makes of a picture. */
export function sizeOfSnapshot({ size }: WholePicture, camera: CameraConfig, format: FrameFormat): SizePx {
  if (camera.region === undefined) return size
  const { widthPx, heightPx } = geometryOf(size, camera, format).regionPx
  return { widthPx, heightPx }
}
