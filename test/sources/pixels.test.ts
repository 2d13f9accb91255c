import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { frameBytes, type FrameFormat } from '../../src/vision/frame.js'
import { letterboxFilters } from '../../src/sources/geometry.js'

const run = promisify(execFile)
const clip = fileURLToPath(new URL('../../pipelines/demo/clips/dock.mp4', import.meta.url))
const format: FrameFormat = { input: { widthPx: 416, heightPx: 234 }, align: 'center' }
/** swscale converts pictures of an odd height in another way. */
const odd: FrameFormat = { input: { widthPx: 400, heightPx: 225 }, align: 'center' }

type Stream = Readonly<{ pixels: string; matrix: 'bt601' | 'bt709'; range: 'tv' | 'pc' }>

/** A picture as a stream of that kind has it. */
function asStream({ pixels, matrix, range }: Stream): string {
  const spaces = { bt601: 'smpte170m', bt709: 'bt709' }
  return [
    `scale=flags=bicubic+accurate_rnd+full_chroma_int:out_color_matrix=${matrix}:out_range=${range}`,
    `format=${pixels}`,
    `setparams=range=${range}:colorspace=${spaces[matrix]}`,
  ].join(',')
}

async function rgbOf(input: readonly string[], filters: readonly string[]): Promise<Buffer> {
  const args = ['-v', 'error', '-nostdin', ...input, '-vf', filters.join(',')]
  const out = ['-frames:v', '1', '-f', 'rawvideo', '-pix_fmt', 'rgb24', 'pipe:1']
  return (await run('ffmpeg', [...args, ...out], { encoding: 'buffer', maxBuffer: 1 << 26 })).stdout
}

const streams: readonly Stream[] = [
  'yuv420p',
  'nv12',
  'yuv422p',
  'yuv444p',
  'yuv420p10le',
  'yuv444p12le',
  'p010le',
].flatMap((pixels) =>
  (['bt601', 'bt709'] as const).flatMap((matrix) =>
    (['tv', 'pc'] as const).map((range) => ({ pixels, matrix, range })),
  ),
)

const colours = [
  [200, 40, 60],
  [30, 180, 90],
  [250, 220, 20],
  [255, 255, 255],
  [0, 0, 0],
] as const

describe('pixels of frames', () => {
  const sizes = streams.flatMap((stream) => [
    { ...stream, size: 'even', format },
    ...(/420p$|422p$/.test(stream.pixels) ? [{ ...stream, size: 'odd', format: odd }] : []),
  ])
  it.each(sizes)(
    'of $pixels, $matrix, $range, $size are within 2 of 255 of accurate rounding',
    async ({ format, ...stream }) => {
      const { widthPx, heightPx } = format.input
      const exact = `scale=${widthPx}:${heightPx}:flags=bicubic+accurate_rnd+full_chroma_int+full_chroma_inp`
      const [ours, reference] = await Promise.all([
        rgbOf(['-i', clip], [asStream(stream), ...letterboxFilters({}, format)]),
        rgbOf(['-i', clip], [asStream(stream), exact, 'format=rgb24']),
      ])
      expect(ours.length).toBe(frameBytes(format))
      const apart = ours.reduce((sum, value, at) => sum + Math.abs(value - reference[at]!), 0) / ours.length
      expect(apart).toBeLessThan(2)
      // What has no chroma to lose, or more bits than it leaves with.
      if (!/420p$|nv12|422p$/.test(stream.pixels)) expect(apart).toBeLessThan(0.5)
    },
  )

  it.each([...streams, { pixels: 'yuvj420p', matrix: 'bt601', range: 'pc' } as const])(
    'of $pixels, $matrix, $range have the colours that the stream means',
    async (stream) => {
      const bars = colours.map(
        (colour, at) => `color=c=0x${Buffer.from(colour).toString('hex')}:s=128x360,format=gbrp[b${at}]`,
      )
      const side = `${colours.map((_, at) => `[b${at}]`).join('')}hstack=inputs=${colours.length}`
      const input = ['-f', 'lavfi', '-i', [...bars, side].join(';')]
      const rgb = await rgbOf(input, [asStream(stream), ...letterboxFilters({}, format)])
      for (const [at, colour] of colours.entries()) {
        const middle =
          (117 * format.input.widthPx + Math.round((at + 0.5) * (format.input.widthPx / colours.length))) * 3
        const away = colour.map((value, channel) => Math.abs(value - rgb[middle + channel]!))
        expect(
          Math.max(...away),
          `${rgb.subarray(middle, middle + 3).join(' ')} for ${colour.join(' ')}`,
        ).toBeLessThanOrEqual(4)
      }
    },
  )
})
