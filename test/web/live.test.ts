import { describe, expect, it } from 'vitest'
import { CaptionPlaces, headPlace } from '../../web/src/live/caption-places.js'
import { captionText } from '../../web/src/live/caption-text.js'
import { boxOnSurface, contain, type Rect } from '../../web/src/live/geometry.js'
import { isDanger, labelColor } from '../../web/src/live/label-colors.js'
import { labelName } from '../../web/src/live/label-name.js'
import { parsePictureMessage } from '../../web/src/stream/picture-message.js'
import { emptyForm, newCamera, suggestId } from '../../web/src/views/camera-form.js'

const whole = { sourceWidthPx: 1280, sourceHeightPx: 720, sourceXPx: 0, sourceYPx: 0 }

describe('contain', () => {
  it.each([
    ['a picture of the same shape', { width: 640, height: 360 }, { x: 0, y: 0, width: 1280, height: 720 }],
    ['a tall picture', { width: 360, height: 720 }, { x: 460, y: 0, width: 360, height: 720 }],
    ['a wide picture', { width: 1280, height: 360 }, { x: 0, y: 180, width: 1280, height: 360 }],
  ])('centres %s', (_, picture, place) => {
    expect(contain(picture, { width: 1280, height: 720 })).toEqual(place)
  })
})

describe('boxOnSurface', () => {
  const place = { x: 100, y: 0, width: 640, height: 360 }

  it('scales source pixels to where the picture lies', () => {
    const box = { x1: 320, y1: 180, x2: 640, y2: 360 }
    expect(boxOnSurface(box, whole, place)).toEqual({ x: 260, y: 90, width: 160, height: 90 })
  })

  it('cuts a box at the edges of a region of interest', () => {
    const region = { sourceWidthPx: 640, sourceHeightPx: 360, sourceXPx: 640, sourceYPx: 360 }
    const box = { x1: 0, y1: 0, x2: 960, y2: 540 }
    expect(boxOnSurface(box, region, place)).toEqual({ x: 100, y: 0, width: 320, height: 180 })
  })
})

it('gives captions of boxes that share their upper edge places of their own, inside the picture', () => {
  const places = new CaptionPlaces({ x: 0, y: 0, width: 300, height: 200 })
  const size = { width: 80, height: 15 }
  const box = { x: 100, y: 60, width: 60, height: 60 }
  const taken = [1, 2, 3, 4].map(() => places.take(size, box, 1))
  const keys = new Set(taken.map((at) => `${at?.x},${at?.y}`))
  expect(keys.size).toBe(4)
  for (const { x, y } of taken.filter((at) => at !== undefined)) {
    expect(x).toBeGreaterThanOrEqual(0)
    expect(x + size.width).toBeLessThanOrEqual(300)
    expect(y).toBeGreaterThanOrEqual(0)
    expect(y + size.height).toBeLessThanOrEqual(200)
  }
})

it('keeps captions off what lies over the picture', () => {
  const badge = { x: 0, y: 0, width: 110, height: 34 }
  const places = new CaptionPlaces({ x: 0, y: 0, width: 300, height: 200 }, [badge])
  const at = places.take({ width: 80, height: 15 }, { x: 20, y: 20, width: 60, height: 60 }, 1)
  expect(at && (at.x >= badge.width || at.y >= badge.height)).toBe(true)
})

/** Places of boxes as they come: people one behind another with what they wear, from a seed. */
function crowd(seed: number, people: number): { label: string; rect: Rect }[] {
  let state = seed
  const random = (most: number): number => {
    state = (state * 1_103_515_245 + 12_345) & 0x7fffffff
    return (state / 0x7fffffff) * most
  }
  return Array.from({ length: people }, () => {
    const height = 40 + random(220)
    const rect = { x: random(560), y: random(300), width: height * 0.4, height }
    const helmet = { x: rect.x + rect.width * 0.25, y: rect.y, width: rect.width / 2, height: height / 7 }
    return [
      { label: 'person', rect },
      { label: random(1) < 0.5 ? 'helmet' : 'head', rect: helmet },
      { label: 'no_vest', rect: { ...rect, y: rect.y + height * 0.2, height: height * 0.4 } },
    ]
  }).flat()
}

it.each([1, 3, 6, 12, 30])('hides no head and no other caption among %d people', (people) => {
  const size = { width: 90, height: 17 }
  let placed = 0
  for (let seed = 1; seed <= 50; seed += 1) {
    const boxes = crowd(seed, people)
    const heads = boxes.map(({ label, rect }) => headPlace(label, rect))
    const places = new CaptionPlaces({ x: 0, y: 0, width: 640, height: 360 }, heads)
    const captions = boxes.flatMap(({ rect }) => places.take(size, rect, 2) ?? [])
    placed += captions.length
    for (const [index, caption] of captions.entries())
      for (const other of [...heads, ...captions.slice(index + 1)]) {
        const apart =
          caption.x >= other.x + other.width ||
          other.x >= caption.x + caption.width ||
          caption.y >= other.y + other.height ||
          other.y >= caption.y + caption.height
        expect(apart, `${people} people, seed ${seed}`).toBe(true)
      }
  }
  expect(placed).toBeGreaterThan(50 * Math.min(people, 6))
})

it('leaves free the head of a person, and all of what is one', () => {
  const rect = { x: 0, y: 30, width: 40, height: 90 }
  expect(headPlace('person', rect)).toEqual({ ...rect, height: 30 })
  for (const label of ['head', 'helmet', 'no_helmet', 'hard-hat', 'Hardhat', 'face'])
    expect(headPlace(label, rect), label).toEqual(rect)
})

it.each([
  ['no_vest', 'no vest'],
  ['no-vest', 'no vest'],
  ['NO-Safety Vest', 'NO Safety Vest'],
  ['person', 'person'],
  ['fire__extinguisher_', 'fire extinguisher'],
  ['_', '_'],
])('writes the label %j as people do: %j', (label, name) => {
  expect(labelName(label)).toBe(name)
})

it('says less at a box the smaller the picture is, and never hides what is a reason to look', () => {
  const captions = [640, 360, 240].map((widthPx) => [
    captionText({ label: 'vest', score: 0.714 }, widthPx),
    captionText({ label: 'no_vest', score: 0.714 }, widthPx),
  ])
  expect(captions).toEqual([
    ['vest 71%', 'no vest 71%'],
    ['vest', 'no vest'],
    [undefined, 'no vest'],
  ])
})

it('says at a box what later steps say of it, shortly', () => {
  const attributes = [{ name: 'helmet_colour', value: 'yellow', score: 0.93 }]
  const text = [{ name: 'note', value: 'a text that nobody reads at a glance' }]
  const helmet = { label: 'helmet', score: 0.91, attributes }
  expect([640, 360, 240].map((widthPx) => captionText(helmet, widthPx))).toEqual([
    'helmet yellow 91%',
    'helmet yellow',
    undefined,
  ])
  expect(captionText({ label: 'head', score: 0.9, attributes: text }, 640)).toBe(
    'head a text that nobody read… 90%',
  )
  expect(captionText({ label: 'head', score: 0.9, attributes: text }, 240)).toBe('head')
})

it('keeps the colour of a label, and tells protection from its absence', () => {
  expect(labelColor('Helmet')).toBe(labelColor('helmet'))
  expect(labelColor('zebra')).toBe(labelColor('zebra'))
  expect(labelColor('helmet')).not.toBe(labelColor('head'))
  expect([isDanger('head'), isDanger('no-vest'), isDanger('helmet'), isDanger('nozzle')]).toEqual([
    true,
    true,
    false,
    false,
  ])
})

describe('parsePictureMessage', () => {
  const message = (json: string, jpeg: number[]): ArrayBuffer => {
    const bytes = new TextEncoder().encode(json)
    const data = new Uint8Array(4 + bytes.length + jpeg.length)
    new DataView(data.buffer).setUint32(0, bytes.length)
    data.set(bytes, 4)
    data.set(jpeg, 4 + bytes.length)
    return data.buffer
  }

  it('takes header and picture apart', async () => {
    const parsed = parsePictureMessage(message('{"type":"picture","cameraId":"a","seq":3}', [1, 2, 3]))
    expect(parsed?.header).toMatchObject({ cameraId: 'a', seq: 3 })
    expect([...new Uint8Array((await parsed?.jpeg.arrayBuffer()) ?? new ArrayBuffer(0))]).toEqual([1, 2, 3])
  })

  it.each([
    ['nothing', new ArrayBuffer(0)],
    ['a length beyond the end', new Uint8Array([0, 0, 1, 0, 1]).buffer],
    ['no JSON', message('{', [])],
    ['another message', message('{"type":"other"}', [])],
  ])('leaves %s alone', (_, data) => {
    expect(parsePictureMessage(data)).toBeUndefined()
  })
})

describe('the form of a new camera', () => {
  it('leaves out what was left empty and sends numbers as numbers', () => {
    const values = {
      ...emptyForm,
      id: ' gate ',
      url: 'rtsp://h/1',
      sampleFps: '2,5',
      'region.x': '0.5',
      'region.width': 'half',
    }
    expect(newCamera(values)).toEqual({
      id: 'gate',
      url: 'rtsp://h/1',
      sampleFps: 2.5,
      transport: 'tcp',
      decode: 'full',
      hwaccel: 'none',
      loop: true,
      enabled: true,
      persist: true,
      region: { x: 0.5, width: 'half' },
    })
  })

  it.each([
    ['rtsp://admin:secret@10.0.0.7:554/dock/stream', 'dock'],
    ['rtsp://10.0.0.7:554/live', '10-0-0-7'],
    ['http://nvr.local/site-2/gate/index.m3u8?x=secret', 'gate-index'],
    ['media/yard north.mp4', 'yard-north'],
    ['push:', ''],
    ['', ''],
  ])('suggests for %j the id %j', (url, id) => {
    expect(suggestId(url)).toBe(id)
  })
})
