import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { DeniedAddress } from '../support/denied-address.js'
import { until } from '../support/until.js'
import { WatchedSource } from '../support/watched-source.js'

const denied = DeniedAddress.networks

describe('addresses of RTSP cameras', () => {
  const servers: Server[] = []
  const sockets: Socket[] = []
  let watched: WatchedSource | undefined
  let inner: DeniedAddress
  beforeEach(async () => {
    inner = await DeniedAddress.listen()
  })
  afterEach(async () => {
    await watched?.source.stop()
    await inner.close()
    for (const socket of sockets.splice(0)) socket.destroy()
    for (const server of servers.splice(0)) server.close()
  })

  /** Answers each request with the text, and tells what it was asked. */
  async function rtspServer(answer: (method: string, cseq: string) => string, host = '127.0.0.1') {
    const asked: string[] = []
    const server = createServer((socket) => {
      sockets.push(socket)
      socket.on('error', () => undefined)
      socket.on('data', (data) => {
        const text = data.toString('latin1')
        asked.push(text)
        socket.write(answer(text.split(' ')[0] ?? '', /CSeq: (\d+)/.exec(text)?.[1] ?? '1'))
      })
    })
    servers.push(server)
    server.listen(0, host)
    await once(server, 'listening')
    return { port: (server.address() as AddressInfo).port, asked }
  }

  const notFound = (_: string, cseq: string) => `RTSP/1.0 404 Not Found\r\nCSeq: ${cseq}\r\n\r\n`
  const sdp = [
    'v=0',
    ...['o=- 0 0 IN IP4 127.0.0.2', 's=cam', 'c=IN IP4 127.0.0.2', 't=0 0'],
    ...['m=video 0 RTP/AVP 96', 'a=rtpmap:96 H264/90000', 'a=control:track1', ''],
  ].join('\r\n')

  type Lines = Readonly<Record<string, readonly string[]>>

  /** A camera that answers each method with 200 but where `special` says otherwise; `after` comes behind the answer to it. */
  function camera(special: Lines = {}, after: Lines = {}, description = sdp, isUdp = false) {
    const usual: Lines = {
      OPTIONS: ['200 OK', 'Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN'],
      DESCRIBE: ['200 OK', 'Content-Type: application/sdp', `Content-Length: ${description.length}`],
      SETUP: [
        ...['200 OK', 'Session: 1'],
        isUdp
          ? `Transport: RTP/AVP;unicast;client_port=5000-5001;server_port=${inner.port}-${inner.port + 1};source=${DeniedAddress.host}`
          : 'Transport: RTP/AVP/TCP;unicast;interleaved=0-1',
      ],
      PLAY: ['200 OK', 'Session: 1'],
    }
    return rtspServer((method, cseq) => {
      const [status = '501 No', ...headers] = special[method] ?? usual[method] ?? []
      const body = method === 'DESCRIBE' && status.startsWith('200') ? description : ''
      const more = (after[method] ?? []).map((line) => `${line}\r\n`).join('')
      return `RTSP/1.0 ${status}\r\nCSeq: ${cseq}\r\n${headers.map((line) => `${line}\r\n`).join('')}\r\n${body}${more}`
    })
  }

  const location = () => `rtsp://admin:c4nary@${DeniedAddress.host}:${inner.port}/inner`

  it.each(
    ['OPTIONS', 'DESCRIBE', 'SETUP', 'PLAY'].flatMap((method) =>
      ['tcp', 'udp'].map((transport) => [method, transport]),
    ),
  )('S3: a redirect on %s (%s) is not followed, and told without its password', async (method, transport) => {
    const { port } = await camera(
      { [method]: ['302 Moved', `Location: ${location()}`] },
      {},
      sdp,
      transport === 'udp',
    )
    watched = await WatchedSource.start(
      { url: `rtsp://127.0.0.1:${port}/s`, transport },
      { networks: denied },
    )
    const { reason } = await watched.untilState('backoff')
    expect(reason).toBe(
      `the camera redirects to rtsp://***@${DeniedAddress.host}:${inner.port}/inner: name that address`,
    )
    expect(JSON.stringify([watched.logLines, watched.warnings])).not.toContain('c4nary')
    expect(inner.asked).toEqual([])
  })

  it.each(['OPTIONS', 'DESCRIBE', 'PLAY'])(
    'S3: a camera that says REDIRECT of its own accord, after %s, is not followed',
    async (method) => {
      const redirect = [`REDIRECT rtsp://cam/s RTSP/1.0`, 'CSeq: 99', `Location: ${location()}`, '']
      const { port } = await camera({}, { [method]: redirect })
      watched = await WatchedSource.start({ url: `rtsp://127.0.0.1:${port}/s` }, { networks: denied })
      expect((await watched.untilState('backoff')).reason).toMatch(/^the camera redirects to /)
      expect(inner.asked).toEqual([])
    },
  )

  it.each(['Content-Base', 'Content-Location', 'a=control', 'c=', 'RTP-Info'])(
    'S3: a denied address in %s is asked nothing',
    async (place) => {
      const url = `rtsp://${DeniedAddress.host}:${inner.port}/inner/`
      const description = place === 'a=control' ? sdp.replace('track1', `${url}track1`) : sdp
      const isHeader = place.startsWith('Content-')
      const length = `Content-Length: ${description.length}`
      const { port, asked } = await camera(
        {
          ...(isHeader
            ? { DESCRIBE: ['200 OK', `${place}: ${url}`, 'Content-Type: application/sdp', length] }
            : {}),
          ...(place === 'RTP-Info' ? { PLAY: ['200 OK', `RTP-Info: url=${url}track1;seq=1;rtptime=2`] } : {}),
        },
        {},
        description,
      )
      watched = await WatchedSource.start({ url: `rtsp://127.0.0.1:${port}/s` }, { networks: denied })
      await until('the camera is told to play', () => asked.some((text) => text.startsWith('PLAY ')))
      expect(inner.asked).toEqual([])
    },
  )

  it('S3: no packet goes by UDP to a denied source that the camera names', async () => {
    const { port, asked } = await camera({}, {}, sdp, true)
    watched = await WatchedSource.start(
      { url: `rtsp://127.0.0.1:${port}/s`, transport: 'udp' },
      { networks: denied },
    )
    await until('the camera is told to play', () => asked.some((text) => text.startsWith('PLAY ')))
    // ffmpeg sends its first packets before it plays.
    await watched.source.stop()
    expect(inner.asked).toEqual([])
  })

  it('R20: a name that is being looked up does not hold up a stop', async () => {
    let asked = false
    const lookUp = () => {
      asked = true
      return new Promise<never>(() => undefined)
    }
    watched = await WatchedSource.start({ url: 'rtsp://camera.example/s' }, { lookUp })
    await until('the question', () => asked)
    await watched.source.stop()
    expect(watched.frames).toEqual([])
  })

  it('S3: the camera is asked by its own name, at the address that was checked', async () => {
    const { port, asked } = await rtspServer(notFound)
    const lookUp = () => Promise.resolve([{ address: '127.0.0.1', family: 4 } as const])
    watched = await WatchedSource.start({ url: `rtsp://camera.example:${port}/s?x=1` }, { lookUp })
    expect((await watched.untilState('backoff')).reason).toContain('404')
    expect(asked[0]).toContain(`OPTIONS rtsp://camera.example:${port}/s?x=1 RTSP/1.0`)
  })

  it.each([
    ['the address of several that answers', '127.0.0.1', ['::1', '127.0.0.1']],
    ['an IPv6 address', '::1', ['::1']],
  ])('takes %s', async (_, host, found) => {
    const { port, asked } = await rtspServer(notFound, host)
    const addresses = found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }) as const)
    watched = await WatchedSource.start(
      { url: `rtsp://camera.example:${port}/s` },
      { lookUp: () => Promise.resolve(addresses) },
    )
    expect((await watched.untilState('backoff')).reason).toContain('404')
    expect(asked).toHaveLength(1)
  })
})
