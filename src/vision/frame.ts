import type { Letterbox, LetterboxAlign, SizePx } from './letterbox.js'

/** `suspect`: the decoder reported damage, so what is seen may not be there. */
export type FrameQuality = 'ok' | 'suspect'

/** What the sources must deliver so that a frame can enter the model without another copy. */
export type FrameFormat = Readonly<{ input: SizePx; align: LetterboxAlign }>

/** Bytes of one frame of that format: uint8 RGB, HWC. */
export function frameBytes(format: FrameFormat): number {
  return format.input.widthPx * format.input.heightPx * 3
}

/**
 * One letterboxed picture of one camera on its way to the model.
 *
 * `rgbHwc` is an `ArrayBuffer` of `frameBytes(format)` bytes, uint8 `[heightPx, widthPx, 3]`, RGB 0-255. It has one owner, who
 * gives it back to the {@link FramePool} it came from or transfers it on.
 */
export type Frame = Readonly<{
  cameraId: string
  /** Counts from 1 for each camera; never repeats while the service runs. */
  seq: number
  /** Wall time of arrival, non-decreasing per camera. */
  capturedAtMs: number
  /** Monotonic time at which the last byte left the decoder. */
  arrivedMs: number
  /** Presentation time of the stream to the microsecond, or since the first picture where it has none; may jump when the camera restarts. */
  ptsMs: number
  quality: FrameQuality
  /** Size of the picture as it is shown: as the camera sent it, made as wide as square pixels would be. */
  source: SizePx
  /** Part of the source picture that was analysed, in pixels of `source`; the whole picture without a region of interest. */
  regionPx: Readonly<{ x: number; y: number; widthPx: number; heightPx: number }>
  letterbox: Letterbox
  rgbHwc: ArrayBuffer
}>
