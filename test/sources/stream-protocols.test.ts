import { execFileSync } from 'node:child_process'
import { createReadStream, existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { listingArguments } from '../../src/sources/ffmpeg-command.js'
import { DeniedAddress } from '../support/denied-address.js'
import { makeClip, makePlayList, tempFolder } from '../support/video-clips.js'
import { WatchedSource } from '../support/watched-source.js'

/** Whatever this ffmpeg can open, by name. */
const protocols = [
  ...new Set(
    execFileSync('ffmpeg', listingArguments('protocols'), { encoding: 'utf8' })
      .split('\n')
      .flatMap((line) => /^ {2}(\w+)$/.exec(line)?.[1] ?? []),
  ),
]

/** A gate asks these itself, of addresses that it checks; what it says to others spoils no more than their own list. */
const foreign = protocols.filter((protocol) => !/^https?$/.test(protocol))

/** A play list of one piece that does everything with `url` which a play list can do. */
const places: Readonly<Record<string, (url: string) => string>> = {
  piece: (url) => pieces(`#EXTINF:1,\n${url}`),
  key: (url) => pieces(`#EXT-X-KEY:METHOD=AES-128,URI="${url}"\n#EXTINF:1,\n/list0.ts`),
  map: (url) => pieces(`#EXT-X-MAP:URI="${url}"\n#EXTINF:1,\n/list0.ts`),
  variant: (url) => `#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n${url}\n`,
  sound: (url) => media('AUDIO', url),
  subtitles: (url) => media('SUBTITLES', url),
  view: (url) => media('VIDEO', url),
}

function pieces(lines: string): string {
  return `#EXTM3U\n#EXT-X-TARGETDURATION:1\n${lines}\n#EXT-X-ENDLIST\n`
}

function media(type: string, url: string): string {
  return `#EXTM3U\n#EXT-X-MEDIA:TYPE=${type},GROUP-ID="g",NAME="n",DEFAULT=YES,URI="${url}"\n#EXT-X-STREAM-INF:BANDWIDTH=1,${type}="g"\n/none.m3u8\n`
}

describe('what a stream refers to', () => {
  let folder: Awaited<ReturnType<typeof tempFolder>>
  let watched: WatchedSource | undefined
  let inner: DeniedAddress
  let server: Server
  let base: string
  let root = ''
  const asked: string[] = []

  beforeAll(async () => {
    folder = await tempFolder()
    const clip = await makeClip(folder.file('clip.mp4'))
    await makePlayList(clip, folder.file('list.m3u8'))
    inner = await DeniedAddress.listen()
    server = createServer((request, response) => {
      const url = request.url ?? ''
      asked.push(url)
      const { pathname, searchParams } = new URL(url, 'http://x')
      const to = searchParams.get('to') ?? ''
      if (pathname === '/root.m3u8') response.end(root)
      else if (pathname.startsWith('/moved')) response.writeHead(302, { location: to }).end()
      else if (pathname.startsWith('/in/')) response.end(places[pathname.split('/')[2] ?? '']?.(to))
      else if (!special(pathname, response)) serve(response, folder.file(pathname.slice(1)))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterEach(async () => {
    await watched?.source.stop()
    asked.length = 0
    inner.asked.length = 0
  })
  afterAll(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    await inner.close()
    await folder.remove()
  })

  const host = () => `${DeniedAddress.host}:${inner.port}`

  /** As a play list may write them, bare and inside one another. */
  function waysTo(protocol: string): string[] {
    const there = `${host()}/x.ts`
    return [
      `${protocol}://${there}`,
      `${protocol}:tcp://${there}`,
      `${protocol}+tcp://${there}`,
      `${protocol}:http://${there}`,
    ]
  }

  function special(path: string, response: ServerResponse): boolean {
    const hostile = `#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\ntcp://${host()}/x.m3u8\n`
    const id3 = Buffer.from('ID3\x04\0\0\0\0\0\x0a'.padEnd(20, '\0'), 'latin1')
    if (path === '/plain') response.end(hostile)
    else if (path === '/id3') response.end(Buffer.concat([id3, Buffer.from(hostile)]))
    else if (path === '/gzip') response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(hostile))
    else if (path === '/gzip.m3u8')
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(hostile))
    else if (path === '/icy')
      response.writeHead(200, { 'icy-metaint': '3' }).end(hostile.replace(/[^]{3}/g, (three) => `${three}\0`))
    else if (path === '/ranged')
      response
        .writeHead(206, { 'content-range': `bytes 5-${hostile.length + 4}/${hostile.length + 5}` })
        .end(hostile)
    else if (path === '/sdp')
      response.end(`v=0\nc=IN IP4 ${DeniedAddress.host}\nm=video ${inner.port} RTP/AVP 96\n`)
    else if (path === '/ffconcat') response.end(`ffconcat version 1.0\nfile tcp://${host()}/x.ts\n`)
    else if (path === '/dash')
      response.end(
        `<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011"><Period><AdaptationSet><Representation id="1"><BaseURL>http://${host()}/x.mp4</BaseURL></Representation></AdaptationSet></Period></MPD>`,
      )
    else return false
    return true
  }

  it('S3: no protocol of ffmpeg reaches a denied address from a play list, in any place of it', async () => {
    const lists = Object.keys(places).flatMap((place) =>
      foreign.flatMap((protocol) =>
        waysTo(protocol).map((url) => `/in/${place}/${protocol}.m3u8?to=${encodeURIComponent(url)}`),
      ),
    )
    const all = [...lists, 'list.m3u8']
    root = `#EXTM3U\n${all.map((url) => `#EXT-X-STREAM-INF:BANDWIDTH=1\n${url}\n`).join('')}`
    watched = await WatchedSource.start({ url: `${base}/root.m3u8` }, { networks: DeniedAddress.networks })
    // The one that is good is the last, so that all others have been tried.
    await watched.untilFrames(3, 60_000)
    expect(lists.filter((url) => !asked.includes(url))).toEqual([])
    expect(inner.asked).toEqual([])
  }, 90_000)

  it.each(protocols)(
    'S3: a camera that redirects to %s: leads there no more than its play list',
    async (protocol) => {
      const url = encodeURIComponent(`${protocol}://${host()}/x.ts`)
      watched = await WatchedSource.start(
        { url: `${base}/moved?to=${url}` },
        { networks: DeniedAddress.networks },
      )
      await watched.untilState('backoff')
      expect(inner.asked).toEqual([])
    },
  )

  it.each(['http', 'https', 'tcp', 'httpproxy', 'subfile,,start,0,end,9,,:tcp'])(
    'S3: nor does a piece that redirects to %s:, nor one that is there',
    async (protocol) => {
      const there = `${protocol}://${host()}/x.ts`
      const moved = `/moved/x.ts?to=${encodeURIComponent(there)}`
      for (const url of [there, moved]) {
        root = places['piece']?.(url) ?? ''
        watched = await WatchedSource.start(
          { url: `${base}/root.m3u8` },
          { networks: DeniedAddress.networks },
        )
        await watched.untilState('backoff')
        await watched.source.stop()
      }
      expect(asked).toContain(moved)
      expect(inner.asked).toEqual([])
    },
  )

  it.each(['/plain', '/id3', '/gzip', '/gzip.m3u8', '/icy', '/ranged', '/sdp', '/ffconcat', '/dash'])(
    'S3: a list of places is opened as such by nobody but the gate: %s',
    async (path) => {
      watched = await WatchedSource.start({ url: `${base}${path}` }, { networks: DeniedAddress.networks })
      await watched.untilState('backoff')
      expect(watched.frames).toEqual([])
      expect(inner.asked).toEqual([])
    },
  )

  it.each(['/plain', '/sdp', '/ffconcat', '/dash'])(
    'S3: nor is one in a file named as a video: %s',
    async (path) => {
      const text = await (await fetch(`${base}${path}`)).text()
      await writeFile(folder.file('list-inside.ts'), text)
      const state = () => watched?.source.status.state ?? ''
      watched = await WatchedSource.start(
        { url: folder.file('list-inside.ts') },
        { networks: DeniedAddress.networks, mediaRoot: folder.path },
      )
      await watched.until('it to be given up', () => ['failed', 'backoff'].includes(state()))
      expect(inner.asked).toEqual([])
    },
  )
})

function serve(response: ServerResponse, path: string): void {
  if (existsSync(path)) createReadStream(path).pipe(response)
  else response.writeHead(404).end()
}
