import { scaledSizePx, type SizePx } from '../vision/letterbox.js'
import type { Frame, FrameFormat } from '../vision/frame.js'

/** The picture of a frame of a camera without `maxWidthPx`, without its padding. The frame's buffer is read until the promise settles. */
export async function frameAsJpeg(
  frame: Frame,
  { input }: FrameFormat,
  quality: number,
): Promise<Readonly<{ jpeg: Uint8Array; size: SizePx }>> {
  const { default: sharp } = await import('../lifecycle/sharp.js')
  const { padXPx, padYPx, scale } = frame.letterbox
  const fitting = scaledSizePx(frame.regionPx, input)
  const size = {
    widthPx: Math.min(fitting.widthPx, Math.max(1, Math.round(frame.regionPx.widthPx * scale))),
    heightPx: Math.min(fitting.heightPx, Math.max(1, Math.round(frame.regionPx.heightPx * scale))),
  }
  const jpeg = await sharp(Buffer.from(frame.rgbHwc), {
    raw: { width: input.widthPx, height: input.heightPx, channels: 3 },
  })
    .extract({ left: padXPx, top: padYPx, width: size.widthPx, height: size.heightPx })
    .jpeg({ quality })
    .toBuffer()
  return { jpeg, size }
}
