import { createReadStream, statSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname } from 'node:path'
import sharp from 'sharp'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { ffmpegRun, makeClip, makePlayList, tempFolder } from '../support/video-clips.js'
import { WatchedSource, type WatchOptions } from '../support/watched-source.js'

const login = `Basic ${Buffer.from('u:s@cret').toString('base64')}`

describe('an HTTP camera', () => {
  let folder: Awaited<ReturnType<typeof tempFolder>>
  let watched: WatchedSource | undefined
  let server: Server
  let base: string
  const asked: string[] = []

  beforeAll(async () => {
    folder = await tempFolder()
    const clip = await makeClip(folder.file('clip.mp4'), { seconds: 4 })
    await makePlayList(clip, folder.file('list.m3u8'))
    await writeFile(folder.file('list.key'), '0123456789abcdef')
    await writeFile(folder.file('key.info'), `list.key\n${folder.file('list.key')}\n`)
    const pieces = ['-hls_time', '1', '-hls_list_size', '0']
    const sealed = ['-hls_key_info_file', folder.file('key.info'), folder.file('sealed.m3u8')]
    await ffmpegRun('-i', clip, '-c', 'copy', ...pieces, ...sealed)
    const boxes = [
      '-hls_segment_type',
      'fmp4',
      '-hls_fmp4_init_filename',
      'head.mp4',
      folder.file('boxes.m3u8'),
    ]
    await ffmpegRun('-i', clip, '-c', 'copy', ...pieces, ...boxes)
    await writeFile(
      folder.file('all.m3u8'),
      '#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="n",URI="sound.m3u8"\n#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"\nboxes.m3u8\n',
    )
    const still = await sharp({ create: { width: 64, height: 48, channels: 3, background: 'red' } })
      .jpeg()
      .toBuffer()
    server = createServer((request, response) => {
      asked.push(request.url ?? '')
      if (request.url === '/live.mjpg') multipart(response, still)
      else if (request.url?.startsWith('/to?') === true)
        response.writeHead(302, { location: request.url.slice('/to?'.length) }).end()
      else if (request.url?.startsWith('/list?') === true)
        response.end(playList(request.url.slice('/list?'.length)))
      else if (request.url === '/to-file') response.writeHead(302, { location: 'file:///etc/passwd' }).end()
      else if (request.url === '/bad.m3u8') response.end(playList('file:///etc/passwd'))
      else if (request.url?.startsWith('/locked/') === true && request.headers.authorization !== login)
        response.writeHead(401, { 'www-authenticate': 'Basic realm="cam"' }).end()
      else if (request.url === '/unnamed')
        serveFile(request, response, folder.file('list.m3u8'), 'application/vnd.apple.mpegurl')
      else if (request.url?.startsWith('/locked/') === true)
        serveFile(request, response, folder.file(request.url.slice('/locked/'.length)))
      else serveFile(request, response, folder.file((request.url ?? '').slice(1)))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterEach(async () => {
    await watched?.source.stop()
  })
  afterAll(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    await folder.remove()
  })

  async function start(
    path: string,
    camera: Record<string, unknown> = {},
    options: WatchOptions = {},
  ): Promise<WatchedSource> {
    watched = await WatchedSource.start({ url: `${base}${path}`, ...camera }, options)
    return watched
  }

  it.each(['/clip.mp4', '/list.m3u8', '/unnamed'])('plays %s at its own speed', async (path) => {
    const camera = await start(path)
    const frames = await camera.untilFrames(8, 15_000)
    const tookMs = (frames[7]?.arrivedMs ?? 0) - (frames[0]?.arrivedMs ?? 0)
    expect(tookMs).toBeGreaterThan(1_000)
    expect(frames[0]?.source).toEqual({ widthPx: 320, heightPx: 180 })
  })

  it.each(['/sealed.m3u8', '/all.m3u8', '/to?all.m3u8'])(
    'plays %s: encrypted pieces, pieces with a head of their own, lists of lists, moved ones',
    async (path) => {
      const camera = await start(path)
      await camera.untilFrames(3, 15_000)
      expect(asked).not.toContain('/sound.m3u8')
    },
  )

  it.each(['/locked/clip.mp4', '/locked/all.m3u8'])('logs in to %s and what lies beside it', async (path) => {
    watched = await WatchedSource.start({ url: `${base.replace('//', '//u:s%40cret@')}${path}` })
    await watched.untilFrames(3, 15_000)
  })

  it('shows a stream of single JPEGs as they come, although it has no clock', async () => {
    const camera = await start('/live.mjpg', { sampleFps: 10 })
    await camera.untilFrames(5, 15_000)
    const first = camera.frames.length
    const frames = await camera.untilFrames(first + 21, 15_000)
    const tookMs = (frames[first + 20]?.arrivedMs ?? 0) - (frames[first]?.arrivedMs ?? 0)
    // Ten a second come, and ten a second are shown; by ffmpeg's guess of 25 they would be four.
    expect(tookMs).toBeGreaterThan(1_800)
    expect(tookMs).toBeLessThan(2_600)
    expect(camera.source.status.state).toBe('live')
  })

  it.each(['/to-file', '/bad.m3u8'])('S1: opens no file because %s says so', async (path) => {
    const camera = await start(path)
    const status = await camera.untilState('backoff')
    expect(status.reason).not.toBe('')
    expect(camera.frames).toEqual([])
    expect(camera.logLines.join('')).not.toMatch(/root:/)
  })

  it('follows a redirect to an address that is allowed', async () => {
    const camera = await start(`/to?${base}/clip.mp4`)
    await camera.untilFrames(3, 15_000)
  })

  it.each(['/to?', '/list?'])('S3: is led to no closed address by %s', async (path) => {
    const camera = await start(`${path}http://169.254.169.254/latest.ts`)
    const status = await camera.untilState('backoff')
    expect(status.reason).toContain('169.254.169.254 is a metadata service of a cloud')
    expect(camera.frames).toEqual([])
  })

  it('S3: never asks an address that the settings deny', async () => {
    const inner = createServer((request) => asked.push(`inner ${request.url}`))
    await new Promise<void>((resolve) => inner.listen(0, '127.0.0.2', resolve))
    const { port } = inner.address() as AddressInfo
    const networks = { allow: [], deny: ['127.0.0.2'] }
    try {
      const camera = await start(`/to?http://127.0.0.2:${port}/secret.ts`, {}, { networks })
      expect((await camera.untilState('backoff')).reason).toContain('cameraNetworks.deny')
      expect(asked.filter((path) => path.startsWith('inner'))).toEqual([])
    } finally {
      inner.closeAllConnections()
      await new Promise((resolve) => inner.close(resolve))
    }
  })

  it('S3: opens no RTSP camera whose name stands for a closed address', async () => {
    watched = await WatchedSource.start(
      { url: 'rtsp://localhost:1/s' },
      { networks: { allow: [], deny: ['127.0.0.0/8', '::1'] } },
    )
    expect((await watched.untilState('backoff')).reason).toContain('cameraNetworks.deny')
  })

  it('says that there is nothing at the address', async () => {
    const camera = await start('/missing.mp4')
    expect((await camera.untilState('backoff')).reason).toBe('stream not found on the camera (404)')
  })
})

function serveFile(
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
  type = extname(path) === '.m3u8' ? 'application/vnd.apple.mpegurl' : 'application/octet-stream',
): void {
  const size = statSync(path, { throwIfNoEntry: false })?.size
  if (size === undefined) return void response.writeHead(404).end()
  const from = Number(/bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0)
  response.writeHead(from > 0 ? 206 : 200, {
    'content-type': type,
    'accept-ranges': 'bytes',
    'content-length': size - from,
    'content-range': `bytes ${from}-${size - 1}/${size}`,
  })
  createReadStream(path, { start: from }).pipe(response)
}

function playList(segment: string): string {
  return `#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n${segment}\n#EXT-X-ENDLIST\n`
}

function multipart(response: ServerResponse, still: Buffer): void {
  response.writeHead(200, { 'content-type': 'multipart/x-mixed-replace; boundary=frame' })
  const send = () => {
    response.write(`--frame\r\nContent-Type: image/jpeg\r\nContent-Length: ${still.length}\r\n\r\n`)
    response.write(still)
    response.write('\r\n')
  }
  const timer = setInterval(send, 100)
  response.once('close', () => clearInterval(timer))
}
