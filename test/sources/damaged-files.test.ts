import { readFile, writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { VideoFrames, type VideoFrame } from '../../src/sources/video-frames.js'
import { bothFfmpegs } from '../support/both-ffmpegs.js'
import { annexB, isSlice, pictureUnits, type VideoCodec } from '../support/annex-b.js'
import { ffmpegRun, tempFolder } from '../support/video-clips.js'

const fps = 25
const gop = 25
/** Three pictures of the second group are damaged, a little after its key frame. */
const damaged = [29, 30, 31]
/** Those of the group that are surely hit, and those that surely are not. */
const hit = { from: 33, to: 44 }
const whole = { from: 0, to: 18 }

type Damage = (nal: Buffer) => readonly Buffer[]

const noise: Damage = (nal) => [
  nal.map((byte, at) => (at > 24 && at % 7 === 0 ? byte ^ 0x5a : byte)) as Buffer,
]
const damages: Record<string, Damage> = {
  'noise in it': noise,
  'its end missing': (nal) => [nal.subarray(0, nal.length / 3)],
  'its beginning changed': (nal) => [
    nal.map((byte, at) => (at >= 2 && at < 8 ? byte ^ 0x5a : byte)) as Buffer,
  ],
  'a hole in it': (nal) => [Buffer.concat([nal.subarray(0, 30), Buffer.alloc(60), nal.subarray(90)])],
}

describe.each(bothFfmpegs)('a video file with damage, decoded by %s', (_, program) => {
  const path = process.env['PATH']
  const skips = program === undefined
  let folder: Awaited<ReturnType<typeof tempFolder>>

  beforeAll(async () => {
    folder = await tempFolder()
    if (program !== undefined) process.env['PATH'] = `${program === '' ? '' : `${program}:`}${path}`
  })
  afterAll(async () => {
    process.env['PATH'] = path
    await folder.remove()
  })

  const source = ['-f', 'lavfi', '-i', `testsrc2=s=320x240:r=${fps}:d=6`, '-vf', 'noise=alls=12']

  async function encoded(name: string, coder: readonly string[]): Promise<string> {
    const file = folder.file(name)
    await ffmpegRun(...source, ...coder, file)
    return file
  }

  const coders: Record<string, readonly [VideoCodec, readonly string[]]> = {
    'H.264 (CABAC)': ['h264', ['-c:v', 'libx264', '-preset', 'veryfast', '-bf', '0']],
    'H.264 (CAVLC)': ['h264', ['-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '0']],
    'H.265': [
      'h265',
      [
        '-c:v',
        'libx265',
        '-preset',
        'ultrafast',
        '-x265-params',
        `keyint=${gop}:min-keyint=${gop}:bframes=0:log-level=none`,
      ],
    ],
  }
  // The decoder of H.265 finds little wrong inside a slice.
  const streams = Object.keys(coders).flatMap((coder) =>
    Object.keys(damages)
      .filter((damage) => coder !== 'H.265' || damage.includes('beginning'))
      .map((damage) => [coder, damage] as const),
  )

  it.skipIf(skips).each(streams)(
    'R59: %s with %s is suspect up to the next key frame, and not beyond',
    async (name, kind) => {
      const [codec, coder] = coders[name] ?? ['h264', []]
      const file = await encoded(`clip.${codec}`, [
        ...coder,
        '-g',
        `${gop}`,
        '-sc_threshold',
        '0',
        '-pix_fmt',
        'yuv420p',
      ])
      const pictures = pictureUnits(codec, await readFile(file)).map((picture, n) =>
        damaged.includes(n)
          ? picture.flatMap((nal) => (isSlice(codec, nal) ? (damages[kind]?.(nal) ?? []) : [nal]))
          : picture,
      )
      await writeFile(file, annexB(pictures))
      const frames = await read(file)
      expect(qualities(frames, whole.from, whole.to)).toEqual(['ok'])
      expect(frames.at(-1)?.quality).toBe('ok')
      // One that does not show what refers to lost pictures shows nothing that is not whole.
      const shown = qualities(frames, hit.from, hit.to)
      expect(shown).toEqual(shown.length === 0 ? [] : ['suspect'])
      expect(frames.filter(({ quality }) => quality === 'suspect').length).toBeGreaterThan(0)
    },
  )

  it.skipIf(skips)(
    'R59: H.265 of which a picture is not there is suspect from there to the next key frame',
    async () => {
      const file = await encoded('lost.h265', coders['H.265']?.[1] ?? [])
      const pictures = pictureUnits('h265', await readFile(file))
      await writeFile(file, annexB(pictures.filter((_picture, n) => n !== damaged[0])))
      const frames = await read(file)
      expect(qualities(frames, 0, 14)).toEqual(['ok'])
      expect(frames.some(({ quality }) => quality === 'suspect')).toBe(true)
      expect(frames.at(-1)?.quality).toBe('ok')
    },
  )

  it.skipIf(skips).each([
    ['MJPEG', 'clip.avi', ['-c:v', 'mjpeg', '-q:v', '4', '-pix_fmt', 'yuvj420p']],
    ['MPEG-4', 'clip.avi', ['-c:v', 'mpeg4', '-q:v', '4', '-g', `${gop}`]],
    ['MPEG-2', 'clip.mpg', ['-c:v', 'mpeg2video', '-q:v', '4', '-g', `${gop}`]],
    [
      'H.264 in an MPEG transport stream',
      'clip.ts',
      ['-c:v', 'libx264', '-g', `${gop}`, '-pix_fmt', 'yuv420p'],
    ],
  ] as const)(
    'R59: %s with noise in the middle of the file is suspect there, and whole at its ends',
    async (_name, file, coder) => {
      const clip = await encoded(file, coder)
      const bytes = await readFile(clip)
      for (let at = Math.floor(bytes.length * 0.45); at < bytes.length * 0.5; at += 11)
        bytes[at] = (bytes[at] ?? 0) ^ 0x5a
      await writeFile(clip, bytes)
      const frames = await read(clip)
      expect(qualities(frames, 0, 18)).toEqual(['ok'])
      expect(frames.some(({ quality }) => quality === 'suspect')).toBe(true)
      expect(frames.at(-1)?.quality).toBe('ok')
    },
  )

  async function read(file: string): Promise<readonly VideoFrame[]> {
    const frames: VideoFrame[] = []
    const video = await VideoFrames.open(file, { sampleFps: fps, signal: new AbortController().signal })
    for await (const frame of video) frames.push(frame)
    return frames
  }
})

/** Of frames by their time, in pictures of the clip. */
function qualities(frames: readonly VideoFrame[], from: number, to: number): readonly string[] {
  const inside = frames.filter(({ timeMs }) => {
    const at = Math.round(((timeMs ?? 0) * fps) / 1_000)
    return at >= from && at < to
  })
  return [...new Set(inside.map(({ quality }) => quality))]
}
