import { execFileSync } from 'node:child_process'
import { readFileSync, truncateSync, writeFileSync, statSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { bothFfmpegs } from '../support/both-ffmpegs.js'
import { childOf } from '../support/processes.js'
import { ffmpegRun, tempFolder } from '../support/video-clips.js'
import { WatchedSource } from '../support/watched-source.js'

const fps = 10
const h264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', `${fps}`, '-bf', '2', '-pix_fmt', 'yuv420p']
describe.each(bothFfmpegs)('a video file, played by %s', (_, program) => {
  const path = process.env['PATH']
  const skips = program === undefined
  let folder: Awaited<ReturnType<typeof tempFolder>>
  let watched: WatchedSource | undefined

  beforeAll(async () => {
    folder = await tempFolder()
    if (program !== undefined) process.env['PATH'] = `${program === '' ? '' : `${program}:`}${path}`
  })
  afterEach(() => watched?.source.stop())
  afterAll(async () => {
    process.env['PATH'] = path
    await folder.remove()
  })

  const pattern = (seconds: number, rate = `${fps}`) => [
    '-f',
    'lavfi',
    '-i',
    `testsrc2=s=160x120:r=${rate}:d=${seconds}`,
  ]

  async function make(name: string, ...args: readonly string[]): Promise<string> {
    await ffmpegRun(...args, folder.file(name))
    return name
  }

  async function watch(url: string, camera: Record<string, unknown> = {}): Promise<WatchedSource> {
    watched = await WatchedSource.start({ url, sampleFps: fps, ...camera }, { mediaRoot: folder.path })
    return watched
  }

  const cut = (name: string, share: number) => {
    truncateSync(folder.file(name), Math.floor(statSync(folder.file(name)).size * share))
    return name
  }
  /** As a program writes it that cannot go back to say how long it became. */
  const piped = (name: string, format: string) => {
    writeFileSync(
      folder.file(name),
      execFileSync('ffmpeg', ['-v', 'error', ...pattern(2), ...h264, '-f', format, '-'], { maxBuffer: 1e8 }),
    )
    return name
  }

  const kinds: Record<string, () => Promise<string>> = {
    'raw H.264': () => make('a.h264', ...pattern(2), ...h264),
    'raw H.265': () => make('a.h265', ...pattern(2), '-c:v', 'libx265', '-x265-params', 'log-level=none'),
    'Matroska without a length': async () => piped('a.mkv', 'matroska'),
    'FLV without a length': async () => piped('a.flv', 'flv'),
    'MP4 in fragments': () =>
      make('fragments.mp4', ...pattern(2), ...h264, '-movflags', 'frag_keyframe+empty_moov'),
    'an MPEG transport stream': () => make('a.ts', ...pattern(2), ...h264),
    'AVI with B-frames': () => make('a.avi', ...pattern(2), ...h264),
    'a moving GIF': () => make('a.gif', ...pattern(2)),
  }

  it.skipIf(skips).each(Object.keys(kinds))('R59: %s is played to its end, and once', async (kind) => {
    const camera = await watch((await kinds[kind]?.()) ?? '', { loop: false })
    expect((await camera.untilState('disabled', 20_000)).reason).toBe('the end was reached and loop is off')
    expect(camera.frames.length).toBeGreaterThanOrEqual(2 * fps - 2)
    expect(camera.frames.length).toBeLessThanOrEqual(2 * fps + 1)
    expect(camera.frames.every(({ quality }) => quality === 'ok')).toBe(true)
    expect(camera.statuses.map(({ state }) => state)).not.toContain('backoff')
  })

  it.skipIf(skips).each(Object.keys(kinds))(
    'R59: %s is played again and again, at its own speed',
    async (kind) => {
      const camera = await watch((await kinds[kind]?.()) ?? '')
      const frames = await camera.untilFrames(5 * fps, 30_000)
      const tookMs = (frames.at(-1)?.arrivedMs ?? 0) - (frames[0]?.arrivedMs ?? 0)
      // The newest one begins half a second ahead of its pace, each time that it begins.
      expect(tookMs).toBeGreaterThan(2_500)
      const states = camera.statuses.map(({ state }) => state)
      for (const state of ['backoff', 'stalled', 'failed']) expect(states).not.toContain(state)
      expect(camera.warnings.filter(({ kind: warned }) => warned === 'decode_error')).toEqual([])
    },
  )

  it.skipIf(skips).each([
    ['MP4 in fragments', 'fragments.mp4'],
    ['Matroska without a length', 'a.mkv'],
    ['an MPEG transport stream', 'a.ts'],
  ])('R59: %s that is still being written is played as far as it is', async (kind, name) => {
    await kinds[kind]?.()
    const camera = await watch(cut(name, 0.7), { loop: false })
    expect((await camera.untilState('disabled', 20_000)).reason).toBe('the end was reached and loop is off')
    expect(camera.frames.length).toBeGreaterThan(fps / 2)
  })

  it.skipIf(skips)('R59: a file that is damaged up to its end is played to its end, and once', async () => {
    const name = await make('end.ts', ...pattern(3), ...h264)
    const bytes = readFileSync(folder.file(name))
    for (let at = Math.floor(bytes.length * 0.8); at < bytes.length; at += 9)
      bytes[at] = (bytes[at] ?? 0) ^ 0x5a
    writeFileSync(folder.file(name), bytes)
    const camera = await watch(name, { loop: false })
    expect((await camera.untilState('disabled', 20_000)).reason).toBe('the end was reached and loop is off')
    expect(camera.frames.some(({ quality }) => quality === 'suspect')).toBe(true)
  })

  it.skipIf(skips)(
    'R59: a picture each three seconds is played as it is, with the shortest of time-outs',
    async () => {
      const name = await make(
        'slow.mp4',
        ...pattern(6, '1/3'),
        '-c:v',
        'libx264',
        '-bf',
        '0',
        '-pix_fmt',
        'yuv420p',
      )
      const camera = await watch(name, { stallTimeoutMs: 500 })
      const frames = await camera.untilFrames(3, 30_000)
      expect(frames.slice(1, 3).map(({ ptsMs }, index) => ptsMs - (frames[index]?.ptsMs ?? 0))).toEqual([
        3_000, 3_000,
      ])
      expect(camera.statuses.filter(({ state }) => state === 'live')).toHaveLength(1)
      expect(camera.statuses.map(({ state }) => state)).not.toContain('stalled')
    },
    60_000,
  )

  it.skipIf(skips)(
    'R59: a file whose decoder hangs is stalled, and begun anew',
    async () => {
      const camera = await watch(await make('hang.mp4', ...pattern(2), ...h264), { stallTimeoutMs: 500 })
      await camera.untilFrames(3)
      process.kill(childOf(process.pid, 'ffmpeg').pid, 'SIGSTOP')
      await camera.untilState('stalled', 5_000)
      const had = camera.frames.length
      await camera.untilFrames(had + 3, 20_000)
    },
    60_000,
  )

  it.skipIf(skips).each(['one.h264', 'one.ts', 'one.flv'])(
    'R59: one picture in %s is shown again and again, once a second',
    async (name) => {
      const camera = await watch(await make(name, ...pattern(1), '-frames:v', '1', ...h264))
      const lives = () => camera.statuses.filter(({ state }) => state === 'live').map(({ atMs }) => atMs)
      // What the first decoder shows until it is known that it cannot go back is one round.
      await camera.until('four rounds', () => lives().length >= 4, 30_000)
      expect((lives()[3] ?? 0) - (lives()[1] ?? 0)).toBeGreaterThan(1_500)
      expect(camera.statuses.map(({ state }) => state)).not.toContain('backoff')
    },
    60_000,
  )

  const nothing: Record<string, readonly [() => Promise<string>, 'backoff' | 'failed', RegExp]> = {
    'sound alone': [
      () => make('sound.mp4', '-f', 'lavfi', '-i', 'sine=d=1'),
      'backoff',
      /^there is no video in the file$/,
    ],
    'sound with a cover': [() => covered(), 'backoff', /^there is no video in the file but a cover picture$/],
    'no picture': [
      () => make('none.mp4', ...pattern(1), ...h264, '-t', '0'),
      'backoff',
      /^there is no video in the file$/,
    ],
    'no picture, in fragments': [
      () => make('none-f.mp4', ...pattern(1), ...h264, '-t', '0', '-movflags', 'frag_keyframe+empty_moov'),
      'failed',
      /^the file cannot be read as video$/,
    ],
    'nothing, under the name of a raw stream': [
      async () => written('empty.h264', Buffer.alloc(0)),
      'failed',
      /^the file cannot be read as video$/,
    ],
    'what is no video, under the name of a raw stream': [
      async () => written('text.h264', Buffer.from('no video '.repeat(400))),
      'failed',
      /^the file cannot be read as video$/,
    ],
    'pictures that cannot be decoded': [() => emptied(), 'failed', /^the file cannot be read as video$/],
  }

  it.skipIf(skips).each(Object.keys(nothing))(
    'R59: a file with %s says so, and is not begun again at once',
    async (name) => {
      const [file, state, reason] = nothing[name] ?? []
      const camera = await watch((await file?.()) ?? '', { loop: false })
      expect((await camera.untilState(state ?? 'failed', 20_000)).reason).toMatch(reason ?? /^$/)
      if (state === 'backoff') expect(camera.source.status.retryInMs).toBeGreaterThan(1_000)
      expect(camera.frames).toEqual([])
    },
  )

  it.skipIf(skips)(
    'R59: a file of which nothing can be decoded says so where it is played again and again',
    async () => {
      const camera = await watch(await emptied())
      expect((await camera.untilState('failed', 60_000)).reason).toBe('the file cannot be read as video')
    },
    90_000,
  )

  function written(name: string, bytes: Buffer): string {
    writeFileSync(folder.file(name), bytes)
    return name
  }

  async function covered(): Promise<string> {
    const cover = await make('cover.png', ...pattern(1), '-frames:v', '1')
    const sound = ['-f', 'lavfi', '-i', 'sine=d=1', '-i', folder.file(cover)]
    return make(
      'song.mp4',
      ...sound,
      '-map',
      '0',
      '-map',
      '1',
      '-c:v',
      'copy',
      '-disposition:v',
      'attached_pic',
    )
  }

  /** Of every picture there are only zeros. */
  async function emptied(): Promise<string> {
    const name = await make('zeros.mp4', ...pattern(2), ...h264, '-movflags', '+faststart')
    const bytes = readFileSync(folder.file(name))
    return written(name, bytes.fill(0, bytes.indexOf('mdat') + 4))
  }
})
