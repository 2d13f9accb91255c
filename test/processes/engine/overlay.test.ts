import sharp from 'sharp'
import { expect, it } from 'vitest'
import { overlaySvg } from '../../../src/processes/engine/overlay.js'
import type { Detection } from '../../../src/vision/detection.js'
import type { Frame } from '../../../src/vision/frame.js'
import { headPlace, type Rect } from '../../../src/vision/caption-places.js'
import { crowd } from '../../support/crowd.js'

const size = { widthPx: 320, heightPx: 180 }
const frame = { regionPx: { x: 0, y: 0, ...size } } as Frame
const box = { x1: 10, y1: 40, x2: 60, y2: 90 }

const captions = (detection: Omit<Detection, 'boxPx'>): string[] =>
  [...overlaySvg(frame, [{ ...detection, boxPx: box }], size).matchAll(/>([^<]*)<\/text>/g)].map(
    ([, text]) => text ?? '',
  )

it('says what later steps say of a box beside its label', () => {
  const attributes = [
    { name: 'colour', value: 'yellow', score: 0.9 },
    { name: 'place', value: 'left' },
  ]
  expect(captions({ label: 'helmet', score: 0.912, attributes })).toEqual(['helmet yellow left 91%'])
  expect(captions({ label: 'helmet', score: 0.912 })).toEqual(['helmet 91%'])
})

it('is a picture whatever a step says', async () => {
  const odd = ['a\u0000b\u001B', '\uD800', '<&">', '\uFFFE', 'x'.repeat(300)]
  const attributes = odd.map((value) => ({ name: 'said', value }))
  for (const attribute of attributes) {
    const svg = overlaySvg(frame, [{ label: 'head', score: 1, boxPx: box, attributes: [attribute] }], size)
    const { width, height } = await sharp(Buffer.from(svg))
      .png()
      .toBuffer({ resolveWithObject: true })
      .then(({ info }) => info)
    expect([width, height]).toEqual([320, 180])
  }
  expect(captions({ label: 'head', score: 1, attributes: attributes.slice(4) })[0]).toHaveLength(45)
})

it('hides no head with its captions, among any number of people, and writes inside of the picture', () => {
  const large = { widthPx: 640, heightPx: 360 }
  let written = 0
  for (const people of [1, 3, 12])
    for (let seed = 1; seed <= 20; seed += 1) {
      const found = crowd(seed, people).map(({ label, rect }) => ({ label, rect: seenOf(rect, large) }))
      const detections = found.map(({ label, rect: { x, y, width, height } }) => ({
        label,
        score: 0.5,
        boxPx: { x1: x, y1: y, x2: x + width, y2: y + height },
      }))
      const svg = overlaySvg({ regionPx: { x: 0, y: 0, ...large } } as Frame, detections, large)
      const plates = platesIn(svg)
      written += plates.length
      const heads = found.map(({ label, rect }) => headPlace(label, rect))
      for (const [at, plate] of plates.entries()) {
        expect(plate.y >= 0 && plate.y + plate.height <= large.heightPx).toBe(true)
        for (const other of [...heads, ...plates.slice(at + 1)])
          expect(areApart(plate, other), `${people} people, seed ${seed}`).toBe(true)
      }
    }
  expect(written).toBeGreaterThan(100)
})

it('names boxes as people do, cut at the edges of the picture, and none that lies outside', () => {
  const boxes = [
    { x1: -50, y1: 60, x2: 60, y2: 400 },
    { x1: 400, y1: 10, x2: 500, y2: 90 },
  ]
  const svg = overlaySvg(
    frame,
    boxes.map((boxPx) => ({ label: 'no_vest', score: 0.5, boxPx })),
    size,
  )
  expect(
    [...svg.matchAll(/<rect x="(\S+)" y="(\S+)" width="(\S+)" height="(\S+)" fill="none"/g)].map(
      ([, ...at]) => at,
    ),
  ).toEqual([['0', '60', '60', '120']])
  expect(svg).toContain('>no vest 50%</text>')
})

function platesIn(svg: string): Rect[] {
  return [...svg.matchAll(/<svg x="(\S+)" y="(\S+)" width="(\S+)" height="(\S+)"/g)].map(([, ...numbers]) => {
    const [x = 0, y = 0, width = 0, height = 0] = numbers.map(Number)
    return { x, y, width, height }
  })
}

/** But for what rounding does. */
function areApart(one: Rect, other: Rect): boolean {
  const overlap = (from: number, to: number, otherFrom: number, otherTo: number) =>
    Math.min(to, otherTo) - Math.max(from, otherFrom)
  return (
    overlap(one.x, one.x + one.width, other.x, other.x + other.width) < 0.01 ||
    overlap(one.y, one.y + one.height, other.y, other.y + other.height) < 0.01
  )
}

/** As a detector has it, whose boxes end where the picture does. */
function seenOf({ x, y, width, height }: Rect, { widthPx, heightPx }: typeof size): Rect {
  return { x, y, width: Math.min(widthPx, x + width) - x, height: Math.min(heightPx, y + height) - y }
}
