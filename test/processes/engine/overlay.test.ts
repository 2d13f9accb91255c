import sharp from 'sharp'
import { expect, it } from 'vitest'
import { overlaySvg } from '../../../src/processes/engine/overlay.js'
import type { Detection } from '../../../src/vision/detection.js'
import type { Frame } from '../../../src/vision/frame.js'

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
