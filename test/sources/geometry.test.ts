import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FramePool } from '../../src/vision/frame-pool.js'
import { frameBytes, type FrameFormat } from '../../src/vision/frame.js'
import { letterboxFill, letterboxOf } from '../../src/vision/letterbox.js'
import { geometryOf, letterboxFilters } from '../../src/sources/geometry.js'
import { decodeStill } from '../../src/sources/still.js'
import { tempFolder } from '../support/video-clips.js'

const run = promisify(execFile)
const square: FrameFormat = { input: { widthPx: 160, heightPx: 160 }, align: 'center' }
const wide: FrameFormat = { input: { widthPx: 192, heightPx: 96 }, align: 'top-left' }

type Edges = Readonly<{ left: number; top: number; right: number; bottom: number }>

/** Where the picture lies inside the grey: its first and last column and row that are not all grey. */
function edgesOf(rgb: Uint8Array, { widthPx, heightPx }: FrameFormat['input']): Edges {
  const isPicture = (x: number, y: number) => Math.abs((rgb[(y * widthPx + x) * 3] ?? 0) - letterboxFill) > 40
  const columns = Array.from({ length: widthPx }, (_, x) => x).filter((x) =>
    Array.from({ length: heightPx }, (_, y) => y).some((y) => isPicture(x, y)),
  )
  const rows = Array.from({ length: heightPx }, (_, y) => y).filter((y) =>
    Array.from({ length: widthPx }, (_, x) => x).some((x) => isPicture(x, y)),
  )
  return {
    left: columns[0] ?? -1,
    right: columns.at(-1) ?? -1,
    top: rows[0] ?? -1,
    bottom: rows.at(-1) ?? -1,
  }
}

describe('the letterbox', () => {
  let folder: Awaited<ReturnType<typeof tempFolder>>
  beforeAll(async () => {
    folder = await tempFolder()
  })
  afterAll(async () => {
    await folder.remove()
  })

  const region = { x: 0.25, y: 0.1, width: 0.5, height: 0.4 }
  it.each([
    [320, 180, square, {}],
    [1280, 720, square, {}],
    [1920, 1080, wide, {}],
    [704, 576, square, {}],
    [853, 481, square, {}],
    [101, 333, wide, {}],
    [64, 48, square, {}],
    [1280, 720, square, { region }],
    [853, 481, wide, { region }],
    [1280, 720, square, { maxWidthPx: 100 }],
    [1280, 720, wide, { maxWidthPx: 100, region }],
  ])(
    'of %d x %d lies at the same pixels by ffmpeg, by sharp and by arithmetic',
    async (widthPx, heightPx, format, camera) => {
      // A white picture on grey shows its edges.
      const still = await sharp({
        create: { width: widthPx, height: heightPx, channels: 3, background: 'white' },
      })
        .png()
        .toBuffer()
      const file = folder.file('white.png')
      await sharp(still).toFile(file)
      const filters = ['format=yuv420p', ...letterboxFilters(camera, format)].join(',')
      const { stdout } = await run(
        'ffmpeg',
        ['-v', 'error', '-i', file, '-vf', filters, '-f', 'rawvideo', '-pix_fmt', 'rgb24', 'pipe:1'],
        { encoding: 'buffer', maxBuffer: 1 << 26 },
      )
      expect(stdout.length).toBe(frameBytes(format))
      const pool = new FramePool(frameBytes(format), 1)
      const { rgbHwc, sent } = await decodeStill(still, camera, { format, pool })
      const { source, letterbox, scaled } = geometryOf(sent, camera, format)
      const arithmetic = {
        left: letterbox.padXPx,
        top: letterbox.padYPx,
        right: letterbox.padXPx + scaled.widthPx - 1,
        bottom: letterbox.padYPx + scaled.heightPx - 1,
      }
      expect(edgesOf(stdout, format.input)).toEqual(arithmetic)
      expect(edgesOf(new Uint8Array(rgbHwc), format.input)).toEqual(arithmetic)
      expect(source).toEqual({ widthPx, heightPx })
    },
  )

  it('shows pixels of 1:1 as the filters do that the training measures its clips with', async () => {
    // The f-strings of `letterbox_filter`, put together as Python would for a picture as wide as the cameras'.
    const python = readFileSync(new URL('../../training/ppe/clips.py', import.meta.url), 'utf8')
    const body = /def letterbox_filter[\s\S]*?def place/.exec(python)?.[0] ?? ''
    const [ratio = '', ...filters] = [...body.matchAll(/^ +(?:ratio = )?r?f?"([^"].*)"$/gm)].map(
      ([, text = '']) => text,
    )
    const format = { input: { widthPx: 800, heightPx: 448 }, align: 'center' } as const
    const theirs = filters
      .join('')
      .replaceAll('{ratio}', ratio)
      .replaceAll('{width}', '800')
      .replaceAll('{height}', '448')
    const shown = async (chain: string) => {
      const clip = ['-f', 'lavfi', '-i', 'testsrc2=s=1280x720:r=5:d=1,format=yuv420p', '-vf', chain]
      const raw = ['-f', 'rawvideo', '-pix_fmt', 'rgb24', 'pipe:1']
      return (
        await run('ffmpeg', ['-v', 'error', ...clip, ...raw], { encoding: 'buffer', maxBuffer: 1 << 26 })
      ).stdout
    }
    const ours = await shown(letterboxFilters({}, format).join(','))
    expect(ours.length).toBe(5 * frameBytes(format))
    expect(ours.equals(await shown(theirs))).toBe(true)
  })

  it('is that of the vocabulary when nothing is cut', () => {
    const source = { widthPx: 1920, heightPx: 1080 }
    expect(geometryOf(source, {}, square).letterbox).toEqual(letterboxOf(source, square.input, 'center'))
  })

  it('shows the pixels of the region, in the right place', async () => {
    // Left half red, right half blue; the region is the right quarter.
    const red = { create: { width: 100, height: 100, channels: 3 as const, background: 'red' } }
    const blue = await sharp({ create: { width: 50, height: 100, channels: 3, background: 'blue' } })
      .png()
      .toBuffer()
    const still = await sharp(red)
      .composite([{ input: blue, left: 50, top: 0 }])
      .png()
      .toBuffer()
    const pool = new FramePool(frameBytes(square), 1)
    const cut = { region: { x: 0.75, y: 0, width: 0.25, height: 1 } }
    const { rgbHwc } = await decodeStill(still, cut, { format: square, pool })
    const middle = (80 * 160 + 80) * 3
    expect([...new Uint8Array(rgbHwc, middle, 3)]).toEqual([0, 0, 255])
  })
})
