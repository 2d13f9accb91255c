import type { Rect, Size } from '../../../src/vision/caption-places.js'
import type { PictureHeader } from '../api/types.js'

type BoxPx = Readonly<{ x1: number; y1: number; x2: number; y2: number }>
type PictureInSource = Pick<PictureHeader, 'sourceWidthPx' | 'sourceHeightPx' | 'sourceXPx' | 'sourceYPx'>

/** Largest place for a picture inside the surface that keeps its shape, centred. */
export function contain(picture: Size, surface: Size): Rect {
  const scale = Math.min(surface.width / picture.width, surface.height / picture.height)
  const width = picture.width * scale
  const height = picture.height * scale
  return { x: (surface.width - width) / 2, y: (surface.height - height) / 2, width, height }
}

/** Where a box in source pixels lies on the surface, cut at the edges of the picture. */
export function boxOnSurface(box: BoxPx, header: PictureInSource, place: Rect): Rect {
  const scaleX = place.width / header.sourceWidthPx
  const scaleY = place.height / header.sourceHeightPx
  const clampX = (x: number): number =>
    clamp(place.x + (x - header.sourceXPx) * scaleX, place.x, place.x + place.width)
  const clampY = (y: number): number =>
    clamp(place.y + (y - header.sourceYPx) * scaleY, place.y, place.y + place.height)
  const [x, y] = [clampX(box.x1), clampY(box.y1)]
  return { x, y, width: clampX(box.x2) - x, height: clampY(box.y2) - y }
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value))
}
