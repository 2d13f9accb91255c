import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { once } from 'node:events'
import { afterEach, describe, expect, it } from 'vitest'
import { pinned } from '../../src/sources/pinned-url.js'
import { until } from '../support/until.js'
import { WatchedSource } from '../support/watched-source.js'

describe('addresses of RTSP cameras', () => {
  const servers: Server[] = []
  const sockets: Socket[] = []
  let watched: WatchedSource | undefined
  afterEach(async () => {
    await watched?.source.stop()
    for (const socket of sockets.splice(0)) socket.destroy()
    for (const server of servers.splice(0)) server.close()
  })

  /** Answers each request with the text, and tells what it was asked. */
  async function rtspServer(answer: (cseq: string) => string, host = '127.0.0.1') {
    const asked: string[] = []
    const server = createServer((socket) => {
      sockets.push(socket)
      socket.on('error', () => undefined)
      socket.on('data', (data) => {
        asked.push(data.toString('latin1'))
        socket.write(answer(/CSeq: (\d+)/.exec(data.toString('latin1'))?.[1] ?? '1'))
      })
    })
    servers.push(server)
    server.listen(0, host)
    await once(server, 'listening')
    return { port: (server.address() as AddressInfo).port, asked }
  }

  const notFound = (cseq: string) => `RTSP/1.0 404 Not Found\r\nCSeq: ${cseq}\r\n\r\n`

  it('S3: a camera that redirects its decoder is not followed, and the place is told without its password', async () => {
    const inner = await rtspServer(notFound)
    const location = `rtsp://admin:c4nary@127.0.0.1:${inner.port}/inner`
    const camera = await rtspServer(
      (cseq) => `RTSP/1.0 302 Moved\r\nCSeq: ${cseq}\r\nLocation: ${location}\r\n\r\n`,
    )
    watched = await WatchedSource.start({ url: `rtsp://127.0.0.1:${camera.port}/s` })
    const { reason } = await watched.untilState('backoff')
    expect(reason).toBe(`the camera redirects to rtsp://***@127.0.0.1:${inner.port}/inner: name that address`)
    expect(JSON.stringify([watched.logLines, watched.warnings])).not.toContain('c4nary')
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

  it('S3: the decoder is given the address that was checked, not the name', async () => {
    const camera = await rtspServer(notFound)
    watched = await WatchedSource.start({ url: `rtsp://localhost:${camera.port}/s` })
    expect((await watched.untilState('backoff')).reason).toContain('404')
    expect(camera.asked[0]).toContain(`rtsp://127.0.0.1:${camera.port}/s`)
  })

  it.each([
    ['rtsp://cam/s', 'rtsp://10.0.0.7/s'],
    ['rtsp://u:p%40@cam:8554/s?x=cam', 'rtsp://u:p%40@10.0.0.7:8554/s?x=cam'],
    ['rtsp://cam', 'rtsp://10.0.0.7'],
    ['rtsp://192.0.2.1/s', 'rtsp://192.0.2.1/s'],
    ['rtsps://cam/s', 'rtsps://cam/s'],
  ])('%s becomes %s', async (url, with4) => {
    expect(await pinned(url, [{ address: '10.0.0.7', family: 4 }])).toBe(with4)
  })

  it('takes the address of several that answers', async () => {
    const { port } = await rtspServer(notFound)
    const both = [
      { address: '::1', family: 6 },
      { address: '127.0.0.1', family: 4 },
    ] as const
    expect(await pinned(`rtsp://cam:${port}/s`, both)).toBe(`rtsp://127.0.0.1:${port}/s`)
    expect(await pinned('rtsp://cam/s', [both[0]])).toBe('rtsp://[::1]/s')
  })
})
