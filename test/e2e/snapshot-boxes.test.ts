import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sharp from 'sharp'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { DetectionsMessage } from '../../src/messages/detections-message.js'
import { labelColor } from '../../src/vision/label-colors.js'
import { dockClip, rtspCameras } from '../support/demo-cameras.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'
import { ffmpegRun } from '../support/video-clips.js'

type Camera = Readonly<{
  url: string
  size: Readonly<{ width: number; height: number }>
  picture?: 'own' | 'analysed'
  transport?: string
  region?: Readonly<{ x: number; y: number; width: number; height: number }>
  pushed?: Buffer
}>

/** What is sure of being found in each picture of a scene; others come and go with how it was scaled. */
const sure = 0.6
/** How far a line may lie from where the result has it, in pixels of the picture: the scene is analysed once as video, once as a still. */
const nearPx = 4
/** Of the sides of a box: captions and other boxes lie over some, and a line at the edge of a picture is thin. */
const leastShare = 0.4

let media: string
let service: TestService
let rtsp: Awaited<ReturnType<typeof rtspCameras>>
const cameras = new Map<string, Camera>()

beforeAll(async () => {
  media = mkdtempSync(join(tmpdir(), 'gantry-test-'))
  const place = (name: string) => join(media, name)
  // One scene that does not move, so that boxes of any picture are those of every other one.
  await ffmpegRun('-ss', '3', '-i', dockClip, '-frames:v', '1', place('scene.png'))
  const still = ['-loop', '1', '-i', place('scene.png'), '-t', '4', '-r', '10']
  await ffmpegRun(
    ...still,
    '-c:v',
    'libx264',
    '-pix_fmt',
    'yuv420p',
    '-crf',
    '12',
    '-g',
    '10',
    place('scene.mp4'),
  )
  const jpeg = await sharp(place('scene.png')).jpeg({ quality: 95 }).toBuffer()
  mkdirSync(place('folder'))
  for (const name of ['a.jpg', 'b.jpg']) writeFileSync(join(media, 'folder', name), jpeg)
  const tall = sharp(jpeg).resize(720, 1_280, { fit: 'contain', background: '#507050' }).jpeg({ quality: 95 })
  rtsp = await rtspCameras(1, place('scene.mp4'))
  const wide = { width: 1_280, height: 720 }
  cameras.set('rtsp', { url: rtsp.url('/cam1'), size: wide })
  cameras.set('udp', {
    url: rtsp.url('/cam1'),
    transport: 'udp',
    picture: 'analysed',
    size: { width: 800, height: 450 },
  })
  cameras.set('file', { url: 'scene.mp4', size: wide })
  cameras.set('folder', { url: 'folder', size: wide })
  cameras.set('pushed', { url: 'push:', size: wide, pushed: jpeg })
  cameras.set('tall', { url: 'push:', size: { width: 720, height: 1_280 }, pushed: await tall.toBuffer() })
  const region = { x: 0.5, y: 0.25, width: 0.5, height: 0.75 }
  cameras.set('part', { url: 'push:', size: { width: 640, height: 540 }, region, pushed: jpeg })
  service = await TestService.start({
    pipeline: {
      mediaRoot: media,
      cameras: [...cameras].map(([id, { size: _, picture: __, pushed: ___, ...camera }]) => ({
        id,
        sampleFps: 1,
        ...camera,
      })),
    },
  })
}, 120_000)

afterAll(async () => {
  await service?.[Symbol.asyncDispose]()
  await rtsp?.stop()
  rmSync(media, { recursive: true, force: true })
})

/** Once something is sure in it. */
async function resultOf(id: string, pushed?: Buffer): Promise<DetectionsMessage> {
  if (pushed !== undefined) {
    const headers = { 'content-type': 'image/jpeg' }
    const path = `/api/v1/cameras/${id}/frames`
    await until(
      'a picture taken',
      async () => (await service.fetch(path, { method: 'POST', headers, body: new Uint8Array(pushed) })).ok,
      60_000,
    )
  }
  return until(
    `a result of ${id}`,
    async () => {
      const answer = await service.fetch(`/api/v1/cameras/${id}/latest`)
      const result = answer.ok ? ((await answer.json()) as DetectionsMessage) : undefined
      return result?.detections.some(({ score }) => score > sure) === true ? result : undefined
    },
    60_000,
  )
}

async function snapshotOf(id: string, wanted: string) {
  return until(
    `a snapshot of ${id}`,
    async () => {
      const answer = await service.fetch(`/api/v1/cameras/${id}/snapshot.jpg?overlay=1`)
      if (!answer.ok || answer.headers.get('gantry-picture') !== wanted) return undefined
      const jpeg = Buffer.from(await answer.arrayBuffer())
      const { data, info } = await sharp(jpeg).raw().toBuffer({ resolveWithObject: true })
      expect(answer.headers.get('gantry-picture-size')).toBe(`${info.width}x${info.height}`)
      return { data, width: info.width, height: info.height }
    },
    60_000,
  )
}

type Picture = Awaited<ReturnType<typeof snapshotOf>>

function hasColour({ data, width, height }: Picture, x: number, y: number, colour: string): boolean {
  if (x < 0 || y < 0 || x >= width || y >= height) return false
  const at = 3 * (Math.round(y) * width + Math.round(x))
  return [1, 3, 5].every((from, channel) => {
    return Math.abs((data[at + channel] ?? 0) - Number.parseInt(colour.slice(from, from + 2), 16)) < 70
  })
}

/** How much of the sides of a box is drawn, 0..1; captions and other boxes may lie over some. */
function shareDrawn(
  picture: Picture,
  box: DetectionsMessage['detections'][number]['boxPx'],
  colour: string,
): number {
  const steps = Array.from({ length: 16 }, (_, at) => (at + 0.5) / 16)
  const near = Array.from({ length: 2 * nearPx + 1 }, (_, at) => at - nearPx)
  const between = (from: number, to: number, share: number) => from + (to - from) * share
  const sides = [
    ...[box.y1, box.y2].map(
      (y) => (share: number, off: number) => [between(box.x1, box.x2, share), y + off] as const,
    ),
    ...[box.x1, box.x2].map(
      (x) => (share: number, off: number) => [x + off, between(box.y1, box.y2, share)] as const,
    ),
  ]
  const points = sides.flatMap((side) =>
    steps.map((share) => near.some((off) => hasColour(picture, ...side(share, off), colour))),
  )
  return points.filter(Boolean).length / points.length
}

it.each(['rtsp', 'file', 'folder', 'pushed', 'tall', 'part', 'udp'])(
  'R136: boxes lie where the result has them, in the picture of its own size: %s',
  async (id) => {
    const { size, picture: kind = 'own', pushed, region } = cameras.get(id)!
    const result = await resultOf(id, pushed)
    const picture = await snapshotOf(id, kind)
    // Those of the model's size are as its padding leaves them.
    const most = kind === 'own' ? 0 : 4
    expect(Math.abs(picture.width - size.width)).toBeLessThanOrEqual(most)
    expect(Math.abs(picture.height - size.height)).toBeLessThanOrEqual(most)
    const { widthPx, heightPx } = result.frame
    const [left, top] = [(region?.x ?? 0) * widthPx, (region?.y ?? 0) * heightPx]
    const scale = picture.width / ((region?.width ?? 1) * widthPx)
    const found = result.detections.filter(({ score }) => score > sure)
    expect(found.length).toBeGreaterThan(1)
    const drawn = found.map(({ label, boxPx: { x1, y1, x2, y2 } }) => {
      const box = { x1: x1 - left, x2: x2 - left, y1: y1 - top, y2: y2 - top }
      const scaled = Object.fromEntries(
        Object.entries(box).map(([side, at]) => [side, at * scale]),
      ) as typeof box
      return { label, scaled, share: shareDrawn(picture, scaled, labelColor(label)) }
    })
    expect(drawn.filter(({ share }) => share < leastShare)).toEqual([])
  },
  180_000,
)
