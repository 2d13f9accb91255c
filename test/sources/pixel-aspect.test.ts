import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname } from 'node:path'
import { promisify } from 'node:util'
import sharp from 'sharp'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { newestFfmpeg } from '../../scripts/lib/newest-ffmpeg.mjs'
import { isPushSource } from '../../src/sources/create-source.js'
import { AddressPolicy } from '../../src/lifecycle/address-policy.js'
import { ConnectGate } from '../../src/sources/connect-gate.js'
import { frameArguments } from '../../src/sources/ffmpeg-command.js'
import { MainStream } from '../../src/sources/main-picture.js'
import { VideoFrames } from '../../src/sources/video-frames.js'
import { cameraSchema } from '../../src/config/camera.js'
import { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { StandInFfmpeg } from '../support/stand-in-ffmpeg.js'
import { until } from '../support/until.js'
import { ffmpegRun, makePlayList, tempFolder } from '../support/video-clips.js'
import { type SeenFrame, WatchedSource, type WatchOptions } from '../support/watched-source.js'

const run = promisify(execFile)

/** Left half red, right half blue, with a green square of 80 x 80 in the middle, when it is shown as 320 x 180. */
const drawn = (widthPx: number, heightPx: number) => {
  const [w, h] = [widthPx / 320, heightPx / 180]
  const box = (x: number, y: number, width: number, height: number, color: string) =>
    `drawbox=x=${x * w}:y=${y * h}:w=${width * w}:h=${height * h}:color=${color}:t=fill`
  return `color=red:s=${widthPx}x${heightPx}:r=5:d=1,${box(160, 0, 160, 180, 'blue')},${box(120, 50, 80, 80, 'green')}`
}
const h264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '5', '-pix_fmt', 'yuv420p']

let folder: Awaited<ReturnType<typeof tempFolder>>
let watched: WatchedSource | undefined

/** A picture of 160 x 180 whose pixels are as wide as `sar` says, in the container and with the codec that are asked for. */
async function makeWide(name: string, sar = '2/1', codec: readonly string[] = h264, size = [160, 180]) {
  const [widthPx = 0, heightPx = 0] = size
  const filters = `${drawn(widthPx, heightPx)},setsar=${sar}`
  await ffmpegRun('-f', 'lavfi', '-i', filters, ...codec, folder.file(name))
  return folder.file(name)
}

/**
 * A stream of H.264 that says nothing of its pixels outside of it.
 *
 * @param vui - the bits of `aspect_ratio_idc` and what belongs to it.
 */
async function makeSignalled(name: string, vui: string): Promise<string> {
  const bytes = readFileSync(await makeWide(`plain-${name}`, '97/89'))
  const bits = (value: number, length: number) => value.toString(2).padStart(length, '0')
  const written = `${bits(255, 8)}${bits(97, 16)}${bits(89, 16)}`
  const nals = bytes
    .toString('latin1')
    .split('\0\0\x01')
    .slice(1)
    .map((nal) => nal.replace(/\0+$/, ''))
  const parts = nals.map((nal) => {
    const raw = Buffer.from(nal.replaceAll('\0\0\x03', '\0\0'), 'latin1')
    if (((raw[0] ?? 0) & 31) !== 7) return Buffer.from(nal, 'latin1')
    const text = [...raw].map((byte) => bits(byte, 8)).join('')
    expect(text).toContain(written)
    const changed = text.replace(written, vui)
    const sps = Buffer.from((changed.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)))
    const escaped = [...sps.toString('latin1')].reduce(
      (before, char) => before + (before.endsWith('\0\0') && char <= '\x03' ? '\x03' : '') + char,
      '',
    )
    return Buffer.from(escaped, 'latin1')
  })
  writeFileSync(folder.file(name), Buffer.concat(parts.flatMap((nal) => [Buffer.from([0, 0, 0, 1]), nal])))
  return folder.file(name)
}

const ratio = (width: number, height: number) =>
  [255, width, height].map((value, at) => value.toString(2).padStart(at === 0 ? 8 : 16, '0')).join('')

beforeAll(async () => {
  folder = await tempFolder()
})
afterEach(async () => {
  await watched?.source.stop()
})
afterAll(async () => {
  await folder.remove()
})

async function watch(
  camera: Readonly<{ url: string } & Record<string, unknown>>,
  options: WatchOptions = {},
) {
  watched = await WatchedSource.start(camera, { mediaRoot: folder.path, keepPixels: true, ...options })
  return watched
}

const colourAt = (frame: SeenFrame | undefined, x: number, y: number) => {
  const [red = 0, green = 0, blue = 0] =
    frame?.pixels?.subarray((y * 160 + x) * 3, (y * 160 + x) * 3 + 3) ?? []
  if (red === 114 && green === 114 && blue === 114) return 'padding'
  const [most] = (
    [
      ['red', red],
      ['green', green],
      ['blue', blue],
    ] as const
  ).toSorted(([, a], [, b]) => b - a)
  return most?.[0]
}

/** What a picture of 320 x 180 shows in a square of 160: half as large, the square in it a square. */
function expectShown(frame: SeenFrame | undefined) {
  expect(frame?.source).toEqual({ widthPx: 320, heightPx: 180 })
  expect(frame?.regionPx).toEqual({ x: 0, y: 0, widthPx: 320, heightPx: 180 })
  expect(frame?.letterbox).toEqual({ scale: 0.5, padXPx: 0, padYPx: 35 })
  const seen = [
    [2, 33],
    [2, 37],
    [157, 122],
    [157, 126],
    // Edges of the square: 60 to 100, and 60 to 100.
    [57, 80],
    [63, 80],
    [97, 80],
    [103, 80],
    [85, 57],
    [85, 63],
    [85, 97],
    [85, 103],
  ].map(([x = 0, y = 0]) => colourAt(frame, x, y))
  expect(seen).toEqual(
    ['padding', 'red', 'blue', 'padding', 'red', 'green', 'green', 'blue'].concat([
      'blue',
      'green',
      'green',
      'blue',
    ]),
  )
}

function multipart(response: ServerResponse, jpeg: Buffer): void {
  response.writeHead(200, { 'content-type': 'multipart/x-mixed-replace; boundary=b' })
  const timer = setInterval(() => {
    response.write(`--b\r\nContent-Type: image/jpeg\r\nContent-Length: ${jpeg.length}\r\n\r\n`)
    response.write(jpeg)
    response.write('\r\n')
  }, 100)
  response.once('close', () => clearInterval(timer))
}

describe('R57: pixels that are not square, as a stream signals them', () => {
  const server = new LoopingRtspServer()
  let base: string
  const http = createServer((request, response) => {
    const name = (request.url ?? '').slice(1)
    if (name === 'live') return multipart(response, readFileSync(folder.file('wide.jpg')))
    const type = { '.jpg': 'image/jpeg', '.m3u8': 'application/vnd.apple.mpegurl', '.mp4': 'video/mp4' }[
      extname(name)
    ]
    response.writeHead(200, { 'content-type': type ?? 'video/mp2t' }).end(readFileSync(folder.file(name)))
  })

  beforeAll(async () => {
    const clip = await makeWide('wide.mp4')
    await server.start()
    await server.addStream('/wide', clip)
    await makePlayList(clip, folder.file('wide.m3u8'))
    await ffmpegRun('-i', clip, '-frames:v', '1', '-q:v', '2', folder.file('wide.jpg'))
    await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
    base = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
  })
  afterAll(async () => {
    await server.stop()
    http.closeAllConnections()
    await new Promise((resolve) => http.close(resolve))
  })

  it.each([
    ['RTSP over TCP', () => ({ url: server.url('/wide') })],
    ['RTSP over UDP', () => ({ url: server.url('/wide'), transport: 'udp' })],
    ['key frames alone', () => ({ url: server.url('/wide'), decode: 'keyframes', sampleFps: 1 })],
    ['HTTP', () => ({ url: `${base}/wide.mp4` })],
    ['HLS', () => ({ url: `${base}/wide.m3u8` })],
    ['MJPEG over HTTP', () => ({ url: `${base}/live` })],
    ['a snapshot URL', () => ({ url: `${base}/wide.jpg` })],
    ['a file', () => ({ url: 'wide.mp4' })],
  ])('the picture comes as wide as it is shown by %s', async (_, camera) => {
    const seen = await watch(camera())
    expectShown((await seen.untilFrames(1, 20_000))[0])
    expect(seen.warnings).toEqual([])
  })

  it.each([
    ['H.264 alone', 'wide.h264', h264],
    ['H.265', 'wide.265', ['-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', 'log-level=error']],
    ['a transport stream', 'wide.ts', h264],
    ['Matroska', 'wide.mkv', h264],
    ['MPEG-4 in AVI', 'wide.avi', ['-c:v', 'mpeg4', '-q:v', '2']],
    ['MPEG-2', 'wide.mpg', ['-c:v', 'mpeg2video', '-q:v', '2', '-r', '25']],
    ['MJPEG', 'wide.mjpeg', ['-c:v', 'mjpeg', '-q:v', '2']],
  ])('the picture comes as wide as it is shown from %s', async (_, name, codec) => {
    await makeWide(name, '2/1', codec)
    const seen = await watch({ url: name })
    const [frame] = await seen.untilFrames(1)
    if (name.endsWith('.mpg')) expect(frame?.source.heightPx).toBe(180)
    else expectShown(frame)
  })

  it.each([
    ['PAL, 4:3', [704, 576], '12/11', 768],
    ['PAL of 720, 16:9', [720, 576], '64/45', 1024],
    ['960H, 4:3', [960, 576], '4/5', 768],
    ['half of its lines', [704, 288], '6/11', 384],
    ['HDV', [1440, 1080], '4/3', 1920],
    ['1080N', [960, 1080], '2/1', 1920],
    ['pixels of 1:1', [704, 576], '1/1', 704],
    ['pixels of a shape that is not told', [704, 576], '0/1', 704],
    ['a prime of pixels', [854, 480], '10/9', 949],
  ])('%s: is as high as it is sent', async (_, size, sar, widthPx) => {
    await makeWide('size.mp4', sar, h264, size)
    const seen = await watch({ url: 'size.mp4' })
    const [frame] = await seen.untilFrames(1)
    expect(frame?.source).toEqual({ widthPx, heightPx: size[1] })
    expect(seen.warnings).toEqual([])
  })

  it('cuts its region where it is shown, by fractions, in pixels that are shown', async () => {
    const region = { x: 0.5, y: 0, width: 0.25, height: 0.5 }
    const [frame] = await (await watch({ url: 'wide.mp4', region })).untilFrames(1)
    expect(frame?.source).toEqual({ widthPx: 320, heightPx: 180 })
    expect(frame?.regionPx).toEqual({ x: 160, y: 0, widthPx: 80, heightPx: 90 })
    expect(frame?.letterbox.scale).toBeCloseTo(160 / 90, 6)
    // x 160..240 and y 0..90: the square reaches to 200 and begins at 50.
    const at = (x: number, y: number) =>
      colourAt(frame, 8 + Math.round(((x - 160) * 160) / 90), Math.round((y * 160) / 90))
    expect([at(165, 30), at(190, 80), at(210, 80)]).toEqual(['blue', 'green', 'blue'])
  })

  it('caps its width as it is shown', async () => {
    const [frame] = await (await watch({ url: 'wide.mp4', maxWidthPx: 80 })).untilFrames(1)
    expect(frame?.letterbox).toEqual({ scale: 0.25, padXPx: 40, padYPx: 57 })
  })

  it.each([
    ['-90', { widthPx: 180, heightPx: 160 }],
    ['180', { widthPx: 320, heightPx: 180 }],
    ['90', { widthPx: 180, heightPx: 160 }],
  ])('a file that is shown turned by %s has its pixels turned too', async (rotation, source) => {
    const plain = rotation === '180' ? '2/1' : '1/2'
    const [width, height] = rotation === '180' ? [160, 180] : [320, 180]
    await makeWide('upright.mp4', plain, h264, [width, height])
    await ffmpegRun(
      ...['-i', folder.file('upright.mp4'), '-c', 'copy', '-metadata:s:v', `rotate=${rotation}`],
      folder.file('turned.mp4'),
    )
    const seen = await watch({ url: 'turned.mp4' })
    const [frame] = await seen.untilFrames(1)
    // 320 x 180 with pixels half as wide is shown as 160 x 180; turned, its height is that many pixels of 2:1.
    expect(frame?.source).toEqual(rotation === '180' ? source : { widthPx: 180 * 2, heightPx: 320 })
    const video = await VideoFrames.open(folder.file('turned.mp4'), {
      sampleFps: 5,
      signal: new AbortController().signal,
    })
    expect(video.size).toEqual(frame?.source)
  })

  it('changes in mid-stream with the same size, and each picture has its own shape', async () => {
    const parts = ['1/1', '2/1', '12/11'].map(async (sar, index) => makeWide(`part${index}.h264`, sar))
    const bytes = (await Promise.all(parts)).map((part) => readFileSync(part))
    writeFileSync(folder.file('changing.h264'), Buffer.concat(bytes))
    const seen = await watch({ url: 'changing.h264', loop: false })
    await seen.untilState('disabled')
    const widths = seen.frames.map(({ source }) => source.widthPx)
    expect([...new Set(widths)]).toEqual([160, 320, 175])
    for (const width of new Set(widths))
      expect(widths.filter((each) => each === width).length).toBeGreaterThanOrEqual(4)
    for (const frame of seen.frames) {
      const { widthPx, heightPx } = frame.source
      const scale = Math.min(160 / widthPx, 160 / heightPx)
      expect(frame.letterbox.scale).toBe(scale)
      const edge = Math.floor((160 - Math.round(widthPx * scale)) / 2)
      if (edge > 1) expect(colourAt(frame, edge - 2, 80)).toBe('padding')
      expect(colourAt(frame, edge + 2, 80)).toBe('red')
    }
    expect(seen.statuses.filter(({ state }) => state === 'live')).toHaveLength(1)
    expect(seen.warnings).toEqual([])
  })

  it('a network camera that changes its size, too, is opened anew, for ffmpeg from 7 on', async () => {
    const parts = [
      await makeWide('part0.ts', '2/1', [...h264, '-f', 'mpegts']),
      await makeWide('part1.ts', '1/1', [...h264, '-f', 'mpegts'], [320, 240]),
    ]
    let [opened, at] = [0, 0]
    const live = createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'video/mp2t' })
      const timer = setInterval(
        () => response.write(readFileSync(parts[opened > 1 ? 1 : at++ % 2] ?? '')),
        500,
      )
      response.once('close', () => clearInterval(timer))
      opened += 1
    })
    await new Promise<void>((resolve) => live.listen(0, '127.0.0.1', resolve))
    const { port } = live.address() as AddressInfo
    try {
      const seen = await watch({ url: `http://127.0.0.1:${port}/live.ts` })
      await seen.until('the other size', () => seen.frames.at(-1)?.source.heightPx === 240, 20_000)
      expect(seen.frames[0]?.source).toEqual({ widthPx: 320, heightPx: 180 })
      expect(seen.frames.at(-1)?.source).toEqual({ widthPx: 320, heightPx: 240 })
      await until('another decoder', () => opened > 1, 20_000)
    } finally {
      await watched?.source.stop()
      live.closeAllConnections()
      await new Promise((resolve) => live.close(resolve))
    }
  })

  it.each([
    // ffmpeg makes this 1:1.
    ['1:0', ratio(1, 0), 0],
    ['0:1', ratio(0, 1), 0],
    ['0:0', ratio(0, 0), 0],
    ['1:65535', ratio(1, 65_535), 1],
    ['65535:1', ratio(65_535, 1), 1],
    ['1000:1', ratio(1_000, 1), 1],
    ['9:1', ratio(9, 1), 1],
    ['1:9', ratio(1, 9), 1],
    ['number 0, which says nothing', '00000000', 0],
  ])('%s is nonsense: the pixels count as square, no picture is suspect, told once', async (_, vui, told) => {
    await makeSignalled('nonsense.h264', vui)
    const seen = await watch({ url: 'nonsense.h264', loop: false })
    await seen.untilState('disabled')
    expect(new Set(seen.frames.map(({ source }) => source.widthPx))).toEqual(new Set([160]))
    expect(new Set(seen.frames.map(({ quality }) => quality))).toEqual(new Set(['ok']))
    expect(seen.warnings.map(({ kind }) => kind)).toEqual(Array(told).fill('pixel_aspect'))
    for (const { detail } of seen.warnings) expect(detail).toMatch(/taken for square/)
    expect(seen.logLines.filter((line) => line.includes('decoder message'))).toEqual([])
  })

  it.each([
    ['8:1', ratio(8, 1), 1280],
    ['1:8', ratio(1, 8), 20],
    ['number 2, which is 12:11', '00000010', 175],
    ['number 16, which is 2:1', '00010000', 320],
  ])('%s is believed', async (_, vui, widthPx) => {
    await makeSignalled('believed.h264', vui)
    const seen = await watch({ url: 'believed.h264' })
    expect((await seen.untilFrames(1))[0]?.source).toEqual({ widthPx, heightPx: 180 })
    expect(seen.warnings).toEqual([])
  })

  it('a shape that is set is not doubted for what the stream says', async () => {
    await makeSignalled('doubted.h264', ratio(1, 65_535))
    const seen = await watch({ url: 'doubted.h264', sampleAspectRatio: '2:1' })
    expectShown((await seen.untilFrames(1))[0])
    expect(seen.warnings).toEqual([])
  })

  it('frames of a clip that are kept as pictures, and those of a batch, are as they are shown', async () => {
    const kept = folder.file('kept.png')
    await run('ffmpeg', ['-v', 'error', ...frameArguments(folder.file('wide.mp4'), { atS: 0 }, kept)])
    expect(await sharp(kept).metadata()).toMatchObject({ width: 320, height: 180 })
    const signal = new AbortController().signal
    const whole = await VideoFrames.open(folder.file('wide.mp4'), { sampleFps: 5, signal })
    expect(whole.size).toEqual({ widthPx: 320, heightPx: 180 })
    const within = { widthPx: 160, heightPx: 160 }
    const small = await VideoFrames.open(folder.file('wide.mp4'), { sampleFps: 5, within, signal })
    expect(small.size).toEqual({ widthPx: 160, heightPx: 90 })
    for await (const { source, rgbHwc } of small) {
      expect(source).toEqual(whole.size)
      expect(rgbHwc.length).toBe(160 * 90 * 3)
    }
  })

  it('a picture that would be larger than memory is meant for is scaled down to 8192 pixels', async () => {
    await makeWide('huge.mp4', '8/1', h264, [2048, 64])
    const signal = new AbortController().signal
    const video = await VideoFrames.open(folder.file('huge.mp4'), { sampleFps: 1, signal })
    expect(video.size).toEqual({ widthPx: 8192, heightPx: 32 })
    for await (const { source } of video) expect(source).toEqual({ widthPx: 16_384, heightPx: 64 })
    const seen = await watch({ url: 'huge.mp4' })
    const [frame] = await seen.untilFrames(1)
    expect(frame?.source).toEqual({ widthPx: 16_384, heightPx: 64 })
    expect(await mainPictureSize('huge.mp4')).toEqual({ widthPx: 4096, heightPx: 16 })
  })

  it('a snapshot of the main stream is as it is shown, or set', async () => {
    expect(await mainPictureSize('wide.mp4')).toEqual({ widthPx: 320, heightPx: 180 })
    const set = { displayAspectRatio: '4:3' }
    expect(await mainPictureSize('wide.mp4', set)).toEqual({ widthPx: 240, heightPx: 180 })
    expect(await mainPictureSize(`${base}/wide.jpg`)).toEqual({ widthPx: 320, heightPx: 180 })
    expect(await mainPictureSize(`${base}/wide.jpg`, set)).toEqual({ widthPx: 240, heightPx: 180 })
    expect(await mainPictureSize(`${base}/live`)).toEqual({ widthPx: 320, heightPx: 180 })
  })

  it.each([
    ['scaled on the card', 'card'],
    ['scaled by the processor', 'no-scale'],
  ] as const)('on a card, %s, it is the same', async (_, mode) => {
    const path = process.env['PATH']
    const dir = folder.file(mode)
    mkdirSync(dir)
    const standIn = new StandInFfmpeg(dir, mode)
    process.env['PATH'] = standIn.path
    try {
      const seen = await watch({ url: server.url('/wide'), hwaccel: 'cuda' })
      expectShown((await seen.untilFrames(1, 20_000))[0])
      expect(seen.source.status.decode?.by).toBe(mode === 'card' ? 'cuda-scaled' : 'cuda')
      await seen.source.stop()
      const parts = ['1/1', '2/1'].map(async (sar, index) => makeWide(`card${index}.h264`, sar))
      const bytes = (await Promise.all(parts)).map((part) => readFileSync(part))
      writeFileSync(folder.file('card.h264'), Buffer.concat(bytes))
      const changing = await watch({ url: 'card.h264', hwaccel: 'cuda', loop: false })
      await changing.untilState('disabled', 20_000)
      // The card does not follow: it is begun again, scaled by the processor.
      const widths = changing.frames.map(({ source }) => source.widthPx)
      expect(widths.slice(-10)).toEqual([160, 160, 160, 160, 160, 320, 320, 320, 320, 320])
    } finally {
      process.env['PATH'] = path
    }
  })

  async function mainPictureSize(url: string, setting: Record<string, unknown> = {}) {
    const camera = cameraSchema.parse({ id: 'cam', url, ...setting })
    const deps = {
      mediaRoot: folder.path,
      addresses: new AddressPolicy(),
      connectGate: new ConnectGate(1),
    }
    const { size, jpeg } = await new MainStream({ camera, deps, withinMs: 10_000 }).take()
    expect(await sharp(jpeg).metadata()).toMatchObject({ width: size.widthPx, height: size.heightPx })
    return size
  }
})

describe('R57: pixels that are not square, as a camera is set', () => {
  beforeAll(() => makeWide('untold.mp4', '0/1'))

  it.each([
    ['sampleAspectRatio', '2:1'],
    ['sampleAspectRatio', '2/1'],
    ['sampleAspectRatio', '2'],
    ['sampleAspectRatio', '1.9999:1'],
    ['displayAspectRatio', '16:9'],
    ['displayAspectRatio', '1.7778'],
    ['displayAspectRatio', '1.7778:1'],
  ])('%s: %s', async (name, value) => {
    const seen = await watch({ url: 'untold.mp4', [name]: value })
    expectShown((await seen.untilFrames(1))[0])
    expect(seen.warnings).toEqual([])
  })

  it('goes before what the stream signals', async () => {
    await makeWide('signalled.mp4', '3/1')
    const seen = await watch({ url: 'signalled.mp4', displayAspectRatio: '16:9' })
    expectShown((await seen.untilFrames(1))[0])
    await seen.source.stop()
    const square = await watch({ url: 'signalled.mp4', sampleAspectRatio: '1:1' })
    expect((await square.untilFrames(1))[0]?.source).toEqual({ widthPx: 160, heightPx: 180 })
  })

  it('is meant as the picture is shown, where the file turns it', async () => {
    await ffmpegRun(
      ...['-i', folder.file('untold.mp4'), '-c', 'copy', '-metadata:s:v', 'rotate=90'],
      folder.file('turned-untold.mp4'),
    )
    const seen = await watch({ url: 'turned-untold.mp4', displayAspectRatio: '9:16' })
    expect((await seen.untilFrames(1))[0]?.source).toEqual({ widthPx: 90, heightPx: 160 })
  })

  it('that fits no pixel is told, and the pixels count as square', async () => {
    await makeWide('narrow.mp4', '1/1', h264, [64, 640])
    const seen = await watch({ url: 'narrow.mp4', displayAspectRatio: '16:1' })
    expect((await seen.untilFrames(1))[0]?.source).toEqual({ widthPx: 64, heightPx: 640 })
    expect(seen.warnings).toEqual([
      expect.objectContaining({
        kind: 'pixel_aspect',
        detail:
          'a picture of 64x640 is not to be shown as 16:1 (displayAspectRatio): its pixels are taken for square',
      }),
    ])
  })

  it.each([
    ['displayAspectRatio', '16:0'],
    ['displayAspectRatio', '0:9'],
    ['displayAspectRatio', 'wide'],
    ['displayAspectRatio', '16x9'],
    ['displayAspectRatio', ''],
    ['displayAspectRatio', '-16:9'],
    ['displayAspectRatio', '17:1'],
    ['displayAspectRatio', 16],
    ['sampleAspectRatio', '9:1'],
    ['sampleAspectRatio', '1:9'],
    ['sampleAspectRatio', '1:1:1'],
    ['sampleAspectRatio', '1e9'],
  ])('%s: %j is refused', (name, value) => {
    expect(cameraSchema.safeParse({ id: 'cam', url: 'x', [name]: value }).success).toBe(false)
  })
})

describe('R57: still pictures whose pixels are not square', () => {
  const still = (orientation?: number) => {
    const image = sharp({ create: { width: 160, height: 180, channels: 3, background: 'red' } })
    return orientation === undefined ? image : image.withMetadata({ orientation })
  }

  /** A JPEG whose JFIF segment says so. */
  async function jpegOf(unit: number, x: number, y: number, orientation?: number): Promise<Buffer> {
    const bytes = await still(orientation).jpeg().toBuffer()
    const jfif = Buffer.from('\xff\xe0\0\x10JFIF\0\x01\x02\0\0\0\0\0\0\0', 'latin1')
    jfif[11] = unit
    jfif.writeUInt16BE(x, 12)
    jfif.writeUInt16BE(y, 14)
    return Buffer.concat([bytes.subarray(0, 2), jfif, bytes.subarray(2)])
  }

  const squares: readonly [string, number, number, number][] = [
    ['1:1', 0, 1, 1],
    ['72 dots an inch', 1, 72, 72],
    ['96 to 72 dots an inch, which is about paper', 1, 96, 72],
    ['dots a centimetre', 2, 28, 56],
    ['nothing', 0, 0, 0],
  ]

  async function push(image: Uint8Array, setting: Record<string, unknown> = {}) {
    const seen = await watch({ url: 'push:', ...setting })
    if (!isPushSource(seen.source)) throw new Error('no push source')
    await seen.source.push(image)
    return seen
  }

  it.each(squares)('%s in a JPEG is square', async (_, unit, x, y) => {
    const seen = await push(await jpegOf(unit, x, y))
    expect(seen.frames[0]?.source).toEqual({ widthPx: 160, heightPx: 180 })
    expect(seen.warnings).toEqual([])
  })

  it('of a JPEG that says so', async () => {
    const seen = await push(await jpegOf(0, 2, 1))
    expect(seen.frames[0]?.source).toEqual({ widthPx: 320, heightPx: 180 })
    expect(seen.frames[0]?.letterbox).toEqual({ scale: 0.5, padXPx: 0, padYPx: 35 })
  })

  it('of a JPEG that is turned by a quarter', async () => {
    const seen = await push(await jpegOf(0, 2, 1, 6))
    expect(seen.frames[0]?.source).toEqual({ widthPx: 90, heightPx: 160 })
  })

  it.each(['jpg', 'png'])('that ffmpeg took of a stream as %s, pushed and in a folder', async (ending) => {
    await makeWide('stream.mp4')
    const dir = folder.file(`stills-${ending}`)
    mkdirSync(dir)
    const file = `${dir}/1.${ending}`
    await ffmpegRun('-i', folder.file('stream.mp4'), '-frames:v', '1', '-q:v', '2', file)
    expectShown((await push(readFileSync(file))).frames[0])
    await watched?.source.stop()
    expectShown((await (await watch({ url: dir })).untilFrames(1))[0])
  })

  it.each([
    [1000, 1],
    [1, 65_535],
    [0, 1],
  ])('of %d to %d are taken for square, told once', async (x, y) => {
    const image = await jpegOf(0, x, y)
    const seen = await push(image)
    if (!isPushSource(seen.source)) throw new Error('no push source')
    await seen.source.push(image)
    expect(seen.frames.map(({ source }) => source.widthPx)).toEqual([160, 160])
    expect(seen.warnings.map(({ kind }) => kind)).toEqual(x === 0 ? [] : ['pixel_aspect'])
  })

  it('follow what the camera is set to, region and all', async () => {
    const region = { x: 0.5, y: 0, width: 0.5, height: 1 }
    const seen = await push(await jpegOf(1, 72, 72), { displayAspectRatio: '16:9', region })
    expect(seen.frames[0]).toMatchObject({
      source: { widthPx: 320, heightPx: 180 },
      regionPx: { x: 160, y: 0, widthPx: 160, heightPx: 180 },
    })
  })

  it.each([
    ['cut off in its head', (bytes: Buffer) => bytes.subarray(0, 12)],
    ['of two bytes', (bytes: Buffer) => bytes.subarray(0, 2)],
    ['of nothing', () => Buffer.alloc(0)],
  ])('%s are refused as any broken picture', async (_, cut) => {
    const seen = await watch({ url: 'push:' })
    if (!isPushSource(seen.source)) throw new Error('no push source')
    await expect(seen.source.push(cut(await jpegOf(0, 2, 1)))).rejects.toMatchObject({
      code: 'GANTRY_IMAGE_INVALID',
    })
  })
})

const newest = newestFfmpeg()

describe.skipIf(newest === undefined)('R57: pixels that are not square, by the newest ffmpeg', () => {
  const path = process.env['PATH']
  const server = new LoopingRtspServer()

  beforeAll(async () => {
    await server.start()
    await server.addStream('/wide', await makeWide('newest.mp4'))
    process.env['PATH'] = `${newest}:${path}`
  })
  afterAll(async () => {
    process.env['PATH'] = path
    await server.stop()
  })

  it.each([
    ['RTSP', () => ({ url: server.url('/wide') })],
    ['a file', () => ({ url: 'newest.mp4' })],
    ['a setting', () => ({ url: 'newest.mp4', displayAspectRatio: '16:9' })],
  ])('the picture comes as wide as it is shown by %s', async (_, camera) => {
    const seen = await watch(camera())
    expectShown((await seen.untilFrames(1, 20_000))[0])
    expect(seen.warnings).toEqual([])
  })
})
