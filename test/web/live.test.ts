import { describe, expect, it } from 'vitest'
import { parsePictureMessage } from '../../clients/typescript/src/picture-message.js'
import { captionText } from '../../web/src/live/caption-text.js'
import { boxOnSurface, contain } from '../../web/src/live/geometry.js'
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

describe('parsePictureMessage', () => {
  const message = (json: string, jpeg: number[]): ArrayBuffer => {
    const bytes = new TextEncoder().encode(json)
    const data = new Uint8Array(4 + bytes.length + jpeg.length)
    new DataView(data.buffer).setUint32(0, bytes.length)
    data.set(bytes, 4)
    data.set(jpeg, 4 + bytes.length)
    return data.buffer
  }

  it('takes header and picture apart', () => {
    const parsed = parsePictureMessage(message('{"type":"picture","cameraId":"a","seq":3}', [1, 2, 3]))
    expect(parsed?.header).toMatchObject({ cameraId: 'a', seq: 3 })
    expect([...(parsed?.jpeg ?? [])]).toEqual([1, 2, 3])
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
