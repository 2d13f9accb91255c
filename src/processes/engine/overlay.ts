import { CaptionPlaces, headPlace, type Rect } from '../../vision/caption-places.js'
import type { Detection } from '../../vision/detection.js'
import type { Frame } from '../../vision/frame.js'
import { dangerLast, labelColor } from '../../vision/label-colors.js'
import { labelName } from '../../vision/label-name.js'
import type { SizePx } from '../../vision/letterbox.js'

/** Letters of a caption before its score; what steps say may be long. */
const mostLetters = 40

/** What no XML may hold is left out. */
function escapeXml(text: string): string {
  return Buffer.from(text)
    .toString()
    .replace(/[\p{Cc}\uFFFE\uFFFF]/gu, '')
    .replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`)
}

function captionOf({ label, score, attributes = [] }: Detection): string {
  const words = [labelName(label), ...attributes.map(({ value }) => value)].join(' ')
  const letters = [...words]
  const shown = letters.length > mostLetters ? `${letters.slice(0, mostLetters - 1).join('')}…` : words
  return `${shown} ${Math.round(score * 100)}%`
}

/** In letters' heights: what the fonts of servers need, rather too much; what is wider yet is cut. */
function widthOf(caption: string): number {
  return [...caption].reduce((sum, letter) => sum + (/[a-z0-9 .,:]/.test(letter) ? 0.64 : 1.05), 0)
}

/** What is seen of a box in the picture; undefined where nothing is. */
function rectOf({ boxPx }: Detection, { regionPx }: Frame, size: SizePx): Rect | undefined {
  const on = (at: number, from: number, length: number, onLength: number) =>
    Math.min(onLength, Math.max(0, ((at - from) * onLength) / length))
  const [left, right] = [boxPx.x1, boxPx.x2].map((x) => on(x, regionPx.x, regionPx.widthPx, size.widthPx))
  const [top, foot] = [boxPx.y1, boxPx.y2].map((y) => on(y, regionPx.y, regionPx.heightPx, size.heightPx))
  const rect = {
    x: left ?? 0,
    y: top ?? 0,
    width: (right ?? 0) - (left ?? 0),
    height: (foot ?? 0) - (top ?? 0),
  }
  return rect.width >= 1 && rect.height >= 1 ? rect : undefined
}

/**
 * Boxes and captions as an SVG of the picture's size, by the rules of the page: a caption hides no head and no other caption, and is left out
 * where there is no room.
 *
 * @param size - of the picture in pixels; boxes, which are in source pixels, are scaled to it.
 */
export function overlaySvg(frame: Frame, detections: readonly Detection[], size: SizePx): string {
  // Letters of pictures that are larger than a screen would not be read.
  const unit = Math.max(1, size.widthPx / 1_280)
  const placed = detections
    .flatMap((detection) => {
      const rect = rectOf(detection, frame, size)
      return rect === undefined ? [] : [{ ...detection, rect }]
    })
    .sort(dangerLast)
  const heads = placed.map(({ label, rect }) => headPlace(label, rect))
  const places = new CaptionPlaces({ x: 0, y: 0, width: size.widthPx, height: size.heightPx }, heads)
  const boxes = placed.map(
    ({ label, rect: { x, y, width, height } }) =>
      `<rect x="${x}" y="${y}" width="${width}" height="${height}" fill="none" stroke="${labelColor(label)}" stroke-width="${2 * unit}"/>`,
  )
  const captions = placed.toReversed().flatMap((detection) => {
    const caption = captionOf(detection)
    const wanted = { width: (widthOf(caption) * 12 + 8) * unit, height: 17 * unit }
    const at = places.take(wanted, detection.rect, unit)
    return at === undefined ? [] : captionSvg(caption, at, labelColor(detection.label), unit)
  })
  const marks = [...boxes, ...captions].join('')
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${size.widthPx}" height="${size.heightPx}">${marks}</svg>`
}

/** Nested, so that no font writes over its edges. */
function captionSvg(caption: string, { x, y, width, height }: Rect, colour: string, unit: number): string {
  return (
    `<svg x="${x}" y="${y}" width="${width}" height="${height}" overflow="hidden">` +
    `<rect width="${width}" height="${height}" rx="${3 * unit}" fill="${colour}"/>` +
    `<text x="${4 * unit}" y="${12.5 * unit}" fill="#07110b" font-family="sans-serif" font-size="${12 * unit}">` +
    `${escapeXml(caption)}</text></svg>`
  )
}
