import type { CameraConfig } from '../../config/camera.js'
import { geometryOf } from '../../sources/geometry.js'
import { letterboxFill, type SizePx } from '../../vision/letterbox.js'
import type { Frame, FrameFormat } from '../../vision/frame.js'

/**
 * The picture of a frame as another model takes it: cut out of its padding, scaled, and padded as a frame of the camera is.
 *
 * What the frame's own size lost is lost: a larger one shows no more.
 *
 * @param from - the format of the frame, whose buffer is read until the promise settles.
 * @param into - of as many bytes as a frame of `to`; the new frame's own.
 */
export async function refit(
  frame: Frame,
  camera: Pick<CameraConfig, 'maxWidthPx'>,
  [from, to]: readonly [FrameFormat, FrameFormat],
  into: ArrayBuffer,
): Promise<Frame> {
  const { default: sharp } = await import('../../lifecycle/sharp.js')
  const picture = pictureIn(frame, from)
  const { scaled, letterbox } = geometryOf(frame.regionPx, { maxWidthPx: camera.maxWidthPx }, to)
  const pixels = await sharp(Buffer.from(frame.rgbHwc), {
    raw: { width: from.input.widthPx, height: from.input.heightPx, channels: 3 },
  })
    .extract({
      left: frame.letterbox.padXPx,
      top: frame.letterbox.padYPx,
      width: picture.widthPx,
      height: picture.heightPx,
    })
    .resize(scaled.widthPx, scaled.heightPx, { fit: 'fill', kernel: 'cubic' })
    .raw({ depth: 'uchar' })
    .toBuffer()
  const target = new Uint8Array(into).fill(letterboxFill)
  const rowBytes = scaled.widthPx * 3
  for (let y = 0; y < scaled.heightPx; y += 1) {
    const at = ((letterbox.padYPx + y) * to.input.widthPx + letterbox.padXPx) * 3
    target.set(pixels.subarray(y * rowBytes, (y + 1) * rowBytes), at)
  }
  return { ...frame, letterbox, rgbHwc: into }
}

/** Size of the picture inside the letterbox of a frame. */
export function pictureIn({ regionPx, letterbox }: Frame, { input }: FrameFormat): SizePx {
  const within = (lengthPx: number, mostPx: number) => Math.min(mostPx, Math.max(1, Math.round(lengthPx)))
  return {
    widthPx: within(regionPx.widthPx * letterbox.scale, input.widthPx - letterbox.padXPx),
    heightPx: within(regionPx.heightPx * letterbox.scale, input.heightPx - letterbox.padYPx),
  }
}
