import type { Detection } from '../../vision/detection.js'
import type { Frame } from '../../vision/frame.js'
import type { SizePx } from '../../vision/letterbox.js'

const colourOf: Readonly<Record<string, string>> = {
  helmet: '#2fbf71',
  head: '#e5484d',
  person: '#4c8dff',
  vest: '#9bd64a',
  no_vest: '#f08c3a',
  machinery: '#f2c14e',
  vehicle: '#b07cf0',
}
const otherColour = '#c8d0dc'

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
  const words = [label, ...attributes.map(({ value }) => value)].join(' ')
  const letters = [...words]
  const shown = letters.length > mostLetters ? `${letters.slice(0, mostLetters - 1).join('')}…` : words
  return escapeXml(`${shown} ${Math.round(score * 100)}%`)
}

/**
 * Boxes and captions as an SVG of the picture's size.
 *
 * @param size - of the picture in pixels; boxes, which are in source pixels, are scaled to it.
 */
export function overlaySvg(frame: Frame, detections: readonly Detection[], size: SizePx): string {
  const scaleX = size.widthPx / frame.regionPx.widthPx
  // Letters of pictures that are larger than a screen would not be read.
  const unit = Math.max(1, size.widthPx / 1_280)
  const scaleY = size.heightPx / frame.regionPx.heightPx
  const marks = detections.map((detection) => {
    const x = (detection.boxPx.x1 - frame.regionPx.x) * scaleX
    const y = (detection.boxPx.y1 - frame.regionPx.y) * scaleY
    const width = (detection.boxPx.x2 - detection.boxPx.x1) * scaleX
    const height = (detection.boxPx.y2 - detection.boxPx.y1) * scaleY
    const colour = colourOf[detection.label] ?? otherColour
    const caption = captionOf(detection)
    const captionY = y > 14 * unit ? y - 4 * unit : y + height + 12 * unit
    return (
      `<rect x="${x}" y="${y}" width="${width}" height="${height}" fill="none" stroke="${colour}" stroke-width="${2 * unit}"/>` +
      `<text x="${x}" y="${captionY}" fill="${colour}" stroke="#000" stroke-width="${3 * unit}" paint-order="stroke" ` +
      `font-family="sans-serif" font-size="${12 * unit}">${caption}</text>`
    )
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${size.widthPx}" height="${size.heightPx}">${marks.join('')}</svg>`
}
