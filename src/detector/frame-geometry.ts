import type { BoxPx } from '../vision/detection.js'
import type { Frame } from '../vision/frame.js'

/** What is needed to find a place of the model input in the camera's picture. */
export type FrameGeometry = Readonly<Pick<Frame, 'letterbox' | 'regionPx' | 'source'>>

/**
 * Maps a box from model-input pixels into the source frame: out of the letterbox, by the offset of the analysed region, clipped
 * to the frame.
 *
 * @returns `undefined` if nothing of it is left, or it is not a number.
 */
export function toSourceBox(
  x1: number,
  y1: number,
  x2: number,
  y2: number,
  { letterbox, regionPx, source }: FrameGeometry,
): BoxPx | undefined {
  const { scale, padXPx, padYPx } = letterbox
  const box = {
    x1: clip((x1 - padXPx) / scale + regionPx.x, source.widthPx),
    y1: clip((y1 - padYPx) / scale + regionPx.y, source.heightPx),
    x2: clip((x2 - padXPx) / scale + regionPx.x, source.widthPx),
    y2: clip((y2 - padYPx) / scale + regionPx.y, source.heightPx),
  }
  return box.x1 < box.x2 && box.y1 < box.y2 ? box : undefined
}

function clip(value: number, max: number): number {
  return Math.min(Math.max(value, 0), max)
}
