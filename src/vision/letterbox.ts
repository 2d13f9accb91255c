/** How a picture is fitted into the model input: padded evenly, or at the right and bottom only (YOLOX). */
export type LetterboxAlign = 'center' | 'top-left'

/** Maps model-input pixels back to the source: `source = (input - pad) / scale`. */
export type Letterbox = Readonly<{ scale: number; padXPx: number; padYPx: number }>

export type SizePx = Readonly<{ widthPx: number; heightPx: number }>

/** Grey of the padding, the value the YOLO family trains with. */
export const letterboxFill = 114

/**
 * The letterbox that fits a source into an input, keeping aspect ratio.
 *
 * Scaled sizes are rounded to whole pixels, at least 1, and the padding before the picture is rounded down, as ffmpeg's `pad` filter
 * does in RGB; so that a decoder that scales by ffmpeg and one that scales by sharp agree.
 */
export function letterboxOf(source: SizePx, input: SizePx, align: LetterboxAlign): Letterbox {
  const scale = Math.min(input.widthPx / source.widthPx, input.heightPx / source.heightPx)
  const scaled = scaledSizePx(source, input)
  if (align === 'top-left') return { scale, padXPx: 0, padYPx: 0 }
  return {
    scale,
    padXPx: Math.floor((input.widthPx - scaled.widthPx) / 2),
    padYPx: Math.floor((input.heightPx - scaled.heightPx) / 2),
  }
}

/** Size of the picture inside the letterbox, without its padding. */
export function scaledSizePx(source: SizePx, input: SizePx): SizePx {
  const scale = Math.min(input.widthPx / source.widthPx, input.heightPx / source.heightPx)
  return {
    widthPx: Math.max(1, Math.round(source.widthPx * scale)),
    heightPx: Math.max(1, Math.round(source.heightPx * scale)),
  }
}
