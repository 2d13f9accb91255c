import { createReadStream } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname } from 'node:path'
import sharp from 'sharp'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { cameraSchema } from '../../src/config/camera.js'
import { nowMs } from '../../src/lifecycle/clock.js'
import { AddressPolicy } from '../../src/lifecycle/address-policy.js'
import { ConnectGate } from '../../src/sources/connect-gate.js'
import { MainStream } from '../../src/sources/main-picture.js'
import { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { plainPicture } from '../support/still-pictures.js'
import { childrenOf } from '../support/processes.js'
import { ffmpegRun, makeClip, makePlayList, tempFolder } from '../support/video-clips.js'

const password = 'c4nary@p:w/ü'
const login = `admin:${encodeURIComponent(password)}`

describe('a picture of the main stream', () => {
  const server = new LoopingRtspServer()
  let http: Server
  let folder: Awaited<ReturnType<typeof tempFolder>>
  const streams: MainStream[] = []

  beforeAll(async () => {
    folder = await tempFolder()
    const clip = await makeClip(folder.file('main.mp4'), { widthPx: 640, heightPx: 360 })
    await makePlayList(clip, folder.file('list.m3u8'))
    await ffmpegRun('-i', clip, '-c', 'copy', '-movflags', '+faststart', folder.file('http.mp4'))
    const red = { source: 'color=0xc8283c:s=1920x1080:r=5:d=1' }
    await makeClip(folder.file('red.mp4'), red)
    await makeClip(folder.file('wide.mp4'), { source: 'testsrc2=s=5000x1000:r=5:d=1', gop: 5 })
    await server.start()
    await server.addStream('/main', clip)
    const credentials = { user: 'admin', password, scheme: 'digest' } as const
    await server.addStream('/locked', clip, { credentials })
    const mute = await server.addStream('/mute', clip)
    mute.silent = true
    const stills = { jpeg: await plainPicture('red'), png: await plainPicture('red', 'png') }
    http = createServer((request, response) => {
      if (request.url === '/snap') return void response.end(stills.jpeg)
      if (request.url === '/snap.png') return void response.end(stills.png)
      if (request.url === '/live') {
        response.writeHead(200, { 'content-type': 'multipart/x-mixed-replace; boundary=b' })
        return void response.write(
          Buffer.concat([Buffer.from('--b\r\nContent-Type: image/jpeg\r\n\r\n'), stills.jpeg]),
        )
      }
      const path = folder.file(request.url === '/unnamed' ? 'list.m3u8' : (request.url ?? '').slice(1))
      const type = extname(path) === '.m3u8' ? 'application/vnd.apple.mpegurl' : 'video/mp4'
      response.writeHead(200, { 'content-type': type })
      createReadStream(path)
        .on('error', () => response.destroy())
        .pipe(response)
    })
    await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  })
  afterEach(() => {
    for (const stream of streams.splice(0)) stream.close()
  })
  afterAll(async () => {
    http.closeAllConnections()
    await new Promise((resolve) => http.close(resolve))
    await server.stop()
    await folder.remove()
  })

  type Settings = Readonly<{ addresses?: AddressPolicy; gate?: ConnectGate; withinMs?: number }>

  function main(
    url: string,
    { addresses, gate, withinMs = 8_000 }: Settings = {},
    camera: object = {},
  ): MainStream {
    const stream = new MainStream({
      camera: cameraSchema.parse({ id: 'cam', url, analyseUrl: 'rtsp://127.0.0.1:1/sub', ...camera }),
      deps: {
        mediaRoot: folder.path,
        addresses: addresses ?? new AddressPolicy(),
        connectGate: gate ?? new ConnectGate(1),
      },
      withinMs,
    })
    streams.push(stream)
    return stream
  }

  const httpUrl = (path: string) => `http://127.0.0.1:${(http.address() as AddressInfo).port}${path}`

  it.each([
    ['RTSP over TCP', () => server.url('/main'), {}],
    ['RTSP over UDP', () => server.url('/main'), { transport: 'udp' }],
    ['RTSP with a login', () => server.url('/locked', login), {}],
    ['HTTP', () => httpUrl('/http.mp4'), {}],
    ['HLS', () => httpUrl('/list.m3u8'), {}],
    ['HLS by another name', () => httpUrl('/unnamed'), {}],
    ['a file', () => 'main.mp4', {}],
  ])('is taken by %s, and nothing is left open', async (_, url, camera) => {
    const { jpeg, size } = await main(url(), {}, camera).take()
    const { format, width, height } = await sharp(jpeg).metadata()
    expect({ format, width, height, ...size }).toEqual({
      ...{ format: 'jpeg', width: 640, height: 360 },
      ...{ widthPx: 640, heightPx: 360 },
    })
    expect(childrenOf(process.pid, 'ffmpeg')).toEqual([])
    expect(server.sessions('/main')).toBe(0)
  })

  it.each(['/snap', '/snap.png', '/live'])(
    'R64: is what an HTTP camera gives by itself: %s',
    async (path) => {
      const { jpeg, size } = await main(httpUrl(path)).take()
      expect(size).toEqual({ widthPx: 64, heightPx: 48 })
      expect((await sharp(jpeg).metadata()).format).toBe('jpeg')
      const [red = 0, green = 0] = await sharp(jpeg).resize(1, 1).raw().toBuffer()
      expect([red > 240, green < 15]).toEqual([true, true])
    },
  )

  it('has the colours of the stream, and of its size at most 4096 pixels', async () => {
    const { jpeg } = await main('red.mp4').take()
    const [red = 0, green = 0, blue = 0] = await sharp(jpeg).resize(1, 1).raw().toBuffer()
    for (const [value, wanted] of [
      [red, 200],
      [green, 40],
      [blue, 60],
    ] as const)
      expect(Math.abs(value - wanted)).toBeLessThanOrEqual(5)
    expect((await main('wide.mp4').take()).size.widthPx).toBe(4_096)
  })

  it('is taken once for all who ask within two seconds', async () => {
    const stream = await server.addStream('/counted', folder.file('main.mp4'))
    const counted = main(server.url('/counted'))
    const pictures = await Promise.all([counted.take(), counted.take(), counted.take()])
    expect(new Set(pictures).size).toBe(1)
    expect(await counted.take()).toBe(pictures[0])
    expect(stream.opened).toBe(1)
  })

  it('S13: is refused at addresses that cameras are not opened at', async () => {
    const closed = new AddressPolicy({ allow: [], deny: [], loopbackClosed: true })
    const wrong: [string, Settings, string][] = [
      [server.url('/main'), { addresses: closed }, 'is this machine itself'],
      [httpUrl('/main.mp4'), { addresses: closed }, 'is this machine itself'],
      ['http://169.254.169.254/latest', {}, 'metadata'],
      ['rtsp://[fe80::1]/1', {}, 'link-local'],
      ['../outside.mp4', {}, 'outside the media folder'],
      ['push:', {}, 'names no stream'],
    ]
    for (const [url, settings, reason] of wrong)
      await expect(main(url, settings).take()).rejects.toMatchObject({
        code: 'GANTRY_SOURCE_FAILED',
        message: expect.stringContaining(reason) as string,
      })
    // A name is looked up at each opening.
    const lookUp = () => Promise.resolve([{ address: '169.254.169.254', family: 4 } as const])
    const addresses = new AddressPolicy({ allow: [], deny: [] }, lookUp)
    await expect(main('rtsp://camera.example/1', { addresses }).take()).rejects.toThrow('address not allowed')
    expect(server.sessions('/main')).toBe(0)
  })

  it('S13: tells nothing of the login, and asks a camera that refuses it once in a while only', async () => {
    const stream = main(server.url('/locked', `admin:${encodeURIComponent(password)}-wrong`))
    const failures: unknown[] = []
    for (let time = 0; time < 2; time += 1)
      failures.push(await stream.take().catch((error: unknown) => error))
    expect(failures[1]).toBe(failures[0])
    expect(failures[0]).toMatchObject({
      message: expect.stringContaining('credentials refused (401)') as string,
    })
    const gone = await main(`rtsp://${login}@127.0.0.1:1/x`)
      .take()
      .catch((error: unknown) => error)
    for (const failure of [failures[0], gone]) {
      const { message, hint, stack = '' } = failure as Error & { hint: string }
      for (const form of [password, encodeURIComponent(password), 'c4nary'])
        expect([message, hint, stack].join(' ')).not.toContain(form)
    }
  })

  it('is given up in time, also where it is not its turn, and when the camera is changed', async () => {
    const beganMs = nowMs()
    await expect(main(server.url('/mute'), { withinMs: 1_000 }).take()).rejects.toThrow(
      'none came within 1 s',
    )
    const gate = new ConnectGate(1)
    gate.request(() => undefined)
    await expect(main(server.url('/main'), { gate, withinMs: 200 }).take()).rejects.toThrow('within 0.2 s')
    const changed = main(server.url('/mute'))
    const taken = expect(changed.take()).rejects.toThrow('the camera was changed or removed')
    changed.close()
    await taken
    expect(nowMs() - beganMs).toBeLessThan(8_000)
    expect(gate.inside).toBe(1)
    expect(childrenOf(process.pid, 'ffmpeg')).toEqual([])
  })
})
