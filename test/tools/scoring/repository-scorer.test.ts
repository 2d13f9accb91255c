import { expect, it, onTestFinished } from 'vitest'
import { inferenceSchema } from '../../../src/config/inference.js'
import type { PictureScorer } from '../../../src/tools/scoring/picture-scorer.js'
import {
  openRepositoryScorer,
  type RepositoryScorerOptions,
} from '../../../src/tools/scoring/repository-scorer.js'
import { clipFrame } from '../../support/clip-frame.js'
import { startDetector } from '../../support/detector-rig.js'
import { redPicture, redRepository } from '../../support/red-pictures.js'
import { silentLog } from '../../support/silent-log.js'

const inference = inferenceSchema.parse({ providers: ['cpu'] })

async function opened(options: Partial<RepositoryScorerOptions> = {}): Promise<PictureScorer> {
  const repositories = options.repositories ?? redRepository()
  const scorer = await openRepositoryScorer({
    repositories,
    model: 'red',
    inference,
    log: silentLog(),
    ...options,
  })
  onTestFinished(() => scorer.stop(1_000))
  return scorer
}

const square = { widthPx: 64, heightPx: 64 }

it('says what scores', async () => {
  const { info } = await opened({ inference: { ...inference, instances: 2 } })
  expect(info).toEqual({
    name: 'red:1',
    labels: ['blue', 'red'],
    where: 'cpu',
    input: '64x64',
    inputPx: square,
    atOnce: 4,
  })
})

it('scores files and pixels, any number at once, each in its own size', async () => {
  const scorer = await opened()
  const scored = await Promise.all(
    Array.from({ length: 20 }, async (_, index) => {
      const factor = 1 + index
      const bytes = await redPicture({ widthPx: 64 * factor, heightPx: 64 * factor }, 255 - index)
      return scorer.score({ kind: 'file', bytes })
    }),
  )
  scored.forEach(({ size, detections, inferMs, decodeMs }, index) => {
    const factor = 1 + index
    expect(size).toEqual({ widthPx: 64 * factor, heightPx: 64 * factor })
    expect(detections).toHaveLength(1)
    const [{ label, score, boxPx }] = detections as [(typeof detections)[number]]
    expect(label).toBe('red')
    expect(score).toBeCloseTo((255 - index) / 255, 2)
    expect(boxPx).toEqual({ x1: 22 * factor, y1: 12 * factor, x2: 42 * factor, y2: 20 * factor })
    expect(decodeMs).toBeGreaterThan(0)
    expect(inferMs).toBeGreaterThan(0)
  })
  const rgbHwc = new Uint8Array(64 * 64 * 3).map((_, at) => (at % 3 === 0 ? 204 : 0))
  const { detections } = await scorer.score({ kind: 'pixels', ...square, rgbHwc })
  expect(detections[0]?.score).toBeCloseTo(0.8, 2)
})

it('turns pictures as their EXIF orientation says', async () => {
  const scorer = await opened()
  const bytes = await redPicture({ widthPx: 128, heightPx: 64 }, 255, 'jpeg', 6)
  expect((await scorer.score({ kind: 'file', bytes })).size).toEqual({ widthPx: 64, heightPx: 128 })
})

it('takes limits before those of model and settings', async () => {
  const config =
    'max_batch_size: 4 parameters { key: "gantry.score_threshold" value { string_value: "0.5" } }'
  const repositories = redRepository(config)
  const bytes = await redPicture(square, 51)
  const found = async (limits?: RepositoryScorerOptions['limits']) => {
    const scorer = await opened({ repositories, ...(limits && { limits }) })
    return (await scorer.score({ kind: 'file', bytes })).detections.length
  }
  expect(await found()).toBe(0)
  expect(await found({ scoreThreshold: 0.1 })).toBe(1)
  expect(await found({ scoreThreshold: 0.25 })).toBe(0)
})

it('refuses what is no picture, and goes on', async () => {
  const scorer = await opened()
  const bytes = await redPicture(square, 255)
  for (const broken of [
    Buffer.from('no picture'),
    bytes.subarray(0, bytes.length / 2),
    await redPicture(square, 9, 'webp'),
  ])
    await expect(scorer.score({ kind: 'file', bytes: broken })).rejects.toMatchObject({
      code: 'GANTRY_IMAGE_INVALID',
    })
  expect((await scorer.score({ kind: 'file', bytes })).detections).toHaveLength(1)
})

it('lets nobody wait for ever when it is stopped', async () => {
  const scorer = await opened()
  const bytes = await redPicture(square, 255)
  const scored = Array.from({ length: 50 }, () => scorer.score({ kind: 'file', bytes }))
  const settled = Promise.allSettled(scored)
  await scorer.stop(1_000)
  for (const each of await settled)
    if (each.status === 'rejected') expect(String(each.reason)).toContain('not analysed: stopping')
  await expect(scorer.score({ kind: 'file', bytes })).rejects.toThrow('not analysed: stopping')
})

it('finds in a picture what a camera finds in it', async () => {
  const rig = await startDetector({ repositoryDir: 'models', ensemble: 'ppe_detect' })
  const { format } = rig.detector.info
  const clip = 'pipelines/demo/clips/yard.mp4'
  const rgbHwc = clipFrame(clip, 30, { widthPx: 1280, heightPx: 720 }, format)
  const source = format.input
  const pixels = new Uint8Array(rgbHwc.slice(0))
  const { result } = await rig.detect({ ...rig.frame('cam', 1), rgbHwc })
  const scorer = await opened({ repositories: 'models', model: 'ppe_detect' })
  const { detections } = await scorer.score({ kind: 'pixels', ...source, rgbHwc: pixels })
  expect(detections.length).toBeGreaterThan(1)
  expect(detections).toEqual(result?.detections)
})
