import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { ffmpegRun, makeClip, tempFolder } from '../support/video-clips.js'
import { WatchedSource, type SeenFrame, type WatchOptions } from '../support/watched-source.js'

describe('what a camera shows', () => {
  let folder: Awaited<ReturnType<typeof tempFolder>>
  let watched: WatchedSource | undefined

  beforeAll(async () => {
    folder = await tempFolder()
    // Left half red, right half blue.
    const halves = 'color=red:s=320x180:r=25:d=1,drawbox=x=160:y=0:w=160:h=180:color=blue:t=fill'
    await makeClip(folder.file('halves.mp4'), { source: halves })
    const codec = [
      '-c:v',
      'libx264',
      '-preset',
      'ultrafast',
      '-g',
      '25',
      '-pix_fmt',
      'yuv420p',
      '-f',
      'mpegts',
    ]
    await makeClip(folder.file('small.ts'), { codec, seconds: 1 })
    await makeClip(folder.file('large.ts'), { codec, seconds: 1, widthPx: 640, heightPx: 480 })
    // The second part goes on where the first ends, as a camera does whose resolution is changed while it runs.
    await ffmpegRun(
      '-i',
      folder.file('large.ts'),
      '-c',
      'copy',
      '-output_ts_offset',
      '1',
      folder.file('later.ts'),
    )
    const parts = ['small.ts', 'later.ts'].map((name) => readFileSync(folder.file(name)))
    writeFileSync(folder.file('changing.ts'), Buffer.concat(parts))
  })
  afterEach(async () => {
    await watched?.source.stop()
  })
  afterAll(async () => {
    await folder.remove()
  })

  async function start(url: string, camera: Record<string, unknown> = {}, options: WatchOptions = {}) {
    watched = await WatchedSource.start(
      { url, ...camera },
      { mediaRoot: folder.path, keepPixels: true, ...options },
    )
    return watched
  }

  const colourAt = (frame: SeenFrame | undefined, x: number, y: number) => {
    const [red = 0, green = 0, blue = 0] =
      frame?.pixels?.subarray((y * 160 + x) * 3, (y * 160 + x) * 3 + 3) ?? []
    if (red === 114 && green === 114 && blue === 114) return 'padding'
    return red > 200 && blue < 60 ? 'red' : blue > 200 && red < 60 ? 'blue' : `${red},${green},${blue}`
  }

  it('is the whole picture in the middle of grey', async () => {
    const [frame] = await (await start('halves.mp4')).untilFrames(1)
    expect(frame?.letterbox).toEqual({ scale: 0.5, padXPx: 0, padYPx: 35 })
    const seen = [
      [10, 34],
      [10, 36],
      [70, 80],
      [90, 80],
      [150, 123],
      [150, 126],
    ]
    expect(seen.map(([x = 0, y = 0]) => colourAt(frame, x, y))).toEqual([
      'padding',
      'red',
      'red',
      'blue',
      'blue',
      'padding',
    ])
  })

  it('is only the region of interest, with its place in the picture', async () => {
    const region = { x: 0.5, y: 0, width: 0.25, height: 0.5 }
    const [frame] = await (await start('halves.mp4', { region })).untilFrames(1)
    expect(frame?.regionPx).toEqual({ x: 160, y: 0, widthPx: 80, heightPx: 90 })
    expect(frame?.source).toEqual({ widthPx: 320, heightPx: 180 })
    expect([colourAt(frame, 80, 80), colourAt(frame, 15, 2), colourAt(frame, 4, 80)]).toEqual([
      'blue',
      'blue',
      'padding',
    ])
  })

  it('is no wider than its cap', async () => {
    const [frame] = await (await start('halves.mp4', { maxWidthPx: 80 })).untilFrames(1)
    expect(frame?.letterbox).toEqual({ scale: 0.25, padXPx: 40, padYPx: 57 })
    expect([
      colourAt(frame, 38, 80),
      colourAt(frame, 44, 80),
      colourAt(frame, 116, 80),
      colourAt(frame, 121, 80),
    ]).toEqual([...['padding', 'red', 'blue', 'padding']])
  })

  it('may change its resolution in mid-stream', async () => {
    const camera = await start('changing.ts', { loop: false })
    await camera.untilState('disabled')
    const widths = camera.frames.map((frame) => frame.source.widthPx)
    expect(new Set(widths)).toEqual(new Set([320, 640]))
    const scales = camera.frames.map((frame) => frame.letterbox.scale * frame.source.widthPx)
    expect(new Set(scales)).toEqual(new Set([160]))
  })

  it.each(['cuda', 'vaapi'])(
    'comes from software where %s is missing, and that is counted',
    async (hwaccel) => {
      const camera = await start('halves.mp4', { hwaccel })
      await camera.untilFrames(2)
      // A machine that has the hardware decodes with it and warns of nothing.
      const fellBack = camera.warnings.filter(({ kind }) => kind === 'hwaccel_fallback')
      expect(fellBack.length).toBe(camera.source.status.attempts - 1)
      expect(camera.statuses.map(({ state }) => state)).not.toContain('backoff')
    },
  )

  it('comes from software where there is no hardware to choose, and that is counted', async () => {
    const camera = await start('halves.mp4', { hwaccel: 'auto' })
    await camera.untilFrames(2)
    // Where there is hardware nothing is warned of; elsewhere once.
    expect(camera.warnings.filter(({ kind }) => kind === 'hwaccel_fallback').length).toBeLessThanOrEqual(1)
    if (!existsSync('/dev/dri') && !existsSync('/dev/nvidia0'))
      expect(camera.warnings.map(({ kind }) => kind)).toContain('hwaccel_fallback')
    expect(camera.source.status).toMatchObject({ state: 'live', attempts: 1 })
  })

  it('costs CPU time that is told, and still is after the end', async () => {
    const camera = await start('halves.mp4', { sampleFps: 25 })
    await camera.untilFrames(40)
    const used = camera.source.decoderCpuSeconds()
    expect(used).toBeGreaterThan(0)
    await camera.source.stop()
    expect(camera.source.decoderCpuSeconds()).toBeGreaterThanOrEqual(used)
  })
})
