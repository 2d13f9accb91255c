import type { DetectionsMessage, PictureHeader } from '../api/types.js'
import type { Overlay } from '../state/overlay.js'
import { CaptionPlaces, headPlace, type Rect } from '../../../src/vision/caption-places.js'
import { captionText, hasRoomForScore } from './caption-text.js'
import { boxOnSurface, contain } from './geometry.js'
import { dangerLast, isDanger, labelColor } from '../../../src/vision/label-colors.js'

/** A decoded picture with what was found in that very frame. */
export type Shown = Readonly<{
  bitmap: ImageBitmap
  header: PictureHeader
  detections: DetectionsMessage['detections']
}>

/**
 * Paints the picture and what is to lie over it on the whole canvas.
 *
 * @param scale - canvas pixels per CSS pixel, so that lines and text keep their size on dense screens.
 */
export function draw(
  canvas: HTMLCanvasElement,
  shown: Shown,
  scale: number,
  { boxes, names }: Overlay,
): void {
  const context = canvas.getContext('2d', { alpha: false })
  if (context === null) return
  const place = contain(shown.bitmap, canvas)
  context.fillStyle = '#05080c'
  context.fillRect(0, 0, canvas.width, canvas.height)
  // Pictures have the size of the model's input, which a large canvas is well above.
  context.imageSmoothingQuality = 'high'
  context.drawImage(shown.bitmap, place.x, place.y, place.width, place.height)
  if (!boxes) return
  const placed = shown.detections
    .map((detection) => ({ ...detection, rect: boxOnSurface(detection.boxPx, shown.header, place) }))
    .filter(({ rect }) => rect.width >= 1 && rect.height >= 1)
    .sort(dangerLast)
  for (const { label, rect } of placed)
    drawBox(context, rect, labelColor(label), (isDanger(label) ? 3 : 2) * scale)
  if (names) drawCaptions(context, placed, place, scale)
}

type Placed = Shown['detections'][number] & Readonly<{ rect: Rect }>

function drawCaptions(
  context: CanvasRenderingContext2D,
  placed: readonly Placed[],
  place: Rect,
  scale: number,
): void {
  const widthPx = place.width / scale
  const heads = placed.map(({ label, rect }) => headPlace(label, rect))
  const captions = new CaptionPlaces(place, [...badgePlaces(place, scale), ...heads])
  const captionScale = scale * (hasRoomForScore(widthPx) ? 1 : 0.85)
  // The other way round than boxes: what matters most chooses its place first.
  for (const detection of [...placed].sort((a, b) => dangerLast(b, a))) {
    const caption = captionText(detection, widthPx)
    if (caption === undefined) continue
    drawCaption(context, caption, detection.rect, captions, labelColor(detection.label), captionScale)
  }
}

/** Where the page shows name and state of the camera, and below what is seen, over the picture. */
function badgePlaces({ x, y, width, height: pictureHeight }: Rect, scale: number): Rect[] {
  const height = 34 * scale
  return [
    { x, y, width: 110 * scale, height },
    { x: x + width - 72 * scale, y, width: 72 * scale, height },
    { x, y: y + pictureHeight - height, width, height },
  ]
}

/** A dark line under the coloured one keeps the box readable on any background. */
function drawBox(context: CanvasRenderingContext2D, rect: Rect, color: string, lineWidth: number): void {
  context.lineJoin = 'round'
  context.strokeStyle = 'rgb(0 0 0 / 0.55)'
  context.lineWidth = lineWidth + 2
  context.strokeRect(rect.x, rect.y, rect.width, rect.height)
  context.strokeStyle = color
  context.lineWidth = lineWidth
  context.strokeRect(rect.x, rect.y, rect.width, rect.height)
}

function drawCaption(
  context: CanvasRenderingContext2D,
  caption: string,
  box: Rect,
  captions: CaptionPlaces,
  color: string,
  scale: number,
): void {
  context.font = `600 ${11.5 * scale}px system-ui, sans-serif`
  context.textBaseline = 'middle'
  const size = { width: context.measureText(caption).width + 10 * scale, height: 17 * scale }
  const taken = captions.take(size, box, scale)
  if (taken === undefined) return
  const { x, y, width, height } = taken
  context.fillStyle = color
  context.beginPath()
  context.roundRect(x, y, width, height, 3 * scale)
  context.fill()
  context.fillStyle = '#07110b'
  context.fillText(caption, x + 5 * scale, y + height / 2 + 0.5 * scale)
}
