import sharp from 'sharp'
import { expect, it } from 'vitest'
import { cameraSchema } from '../../../src/config/camera.js'
import { encodeMainSnapshot, haveSameShape } from '../../../src/processes/engine/picture.js'
import type { Frame, FrameFormat } from '../../../src/vision/frame.js'

const format: FrameFormat = { input: { widthPx: 64, heightPx: 64 }, align: 'center' }
const size = { widthPx: 1_280, heightPx: 720 }
const grey = { r: 90, g: 90, b: 90 }
const jpeg = await sharp({ create: { width: 1_280, height: 720, channels: 3, background: grey } })
  .jpeg()
  .toBuffer()

/** A box of the sub-stream, whose pictures are a quarter as wide. */
const found = (regionPx: Frame['regionPx']) => ({
  frame: { regionPx, source: { widthPx: 320, heightPx: 180 } } as Frame,
  detections: [{ label: 'head', score: 0.9, boxPx: { x1: 100, y1: 60, x2: 140, y2: 100 } }],
})

/** Left, top, right and bottom of what is no longer grey below the caption. */
async function marked(picture: Uint8Array): Promise<readonly number[]> {
  const { data, info } = await sharp(picture).raw().toBuffer({ resolveWithObject: true })
  const places: [number, number][] = []
  for (let y = 0; y < info.height; y += 1)
    for (let x = 0; x < info.width; x += 1) if (data[(y * info.width + x) * 3]! > 170) places.push([x, y])
  const xs = places.map(([x]) => x)
  const ys = places.map(([, y]) => y)
  return [Math.min(...xs), Math.max(...xs), Math.max(...ys)]
}

const near = (values: readonly number[], wanted: readonly number[]) =>
  values.forEach((value, at) => expect(Math.abs(value - wanted[at]!)).toBeLessThanOrEqual(6))

it('draws boxes of the sub-stream where they are in the main stream', async () => {
  const camera = cameraSchema.parse({ id: 'a', url: 'main.mp4', analyseUrl: 'sub.mp4' })
  const whole = await encodeMainSnapshot(
    { jpeg, size },
    camera,
    format,
    found({ x: 0, y: 0, widthPx: 320, heightPx: 180 }),
  )
  near(await marked(whole), [400, 560, 400])
  expect(await encodeMainSnapshot({ jpeg, size }, camera, format)).toBe(jpeg)
})

it('shows as much of the main stream as is analysed of the other', async () => {
  const region = { x: 0.25, y: 0, width: 0.5, height: 1 }
  const camera = cameraSchema.parse({ id: 'a', url: 'main.mp4', analyseUrl: 'sub.mp4', region })
  const part = await encodeMainSnapshot(
    { jpeg, size },
    camera,
    format,
    found({ x: 80, y: 0, widthPx: 160, heightPx: 180 }),
  )
  const { width, height } = await sharp(part).metadata()
  expect([width, height]).toEqual([640, 720])
  near(await marked(part), [80, 240, 400])
})

it.each([
  [640, 360, true],
  [704, 396, true],
  [640, 368, true],
  [704, 576, false],
  [640, 480, false],
])('takes a sub-stream of %d x %d for the same view as 1920 x 1080: %s', (widthPx, heightPx, same) => {
  expect(haveSameShape({ widthPx: 1_920, heightPx: 1_080 }, { widthPx, heightPx })).toBe(same)
})
