import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { createServer as createHttpsServer } from 'node:https'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { basename, join } from 'node:path'
import { pipeline } from 'node:stream'
import { createServer as createTlsServer } from 'node:tls'
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { selfSigned } from '../support/certificate.js'
import { makeClip, makePlayList, tempFolder } from '../support/video-clips.js'
import { WatchedSource } from '../support/watched-source.js'

describe('a camera behind TLS', () => {
  let folder: Awaited<ReturnType<typeof tempFolder>>
  let clip: string
  let watched: WatchedSource | undefined

  beforeAll(async () => {
    folder = await tempFolder()
    clip = await makeClip(folder.file('clip.mp4'))
    await makePlayList(clip, folder.file('list.m3u8'))
  })
  afterEach(async () => {
    await watched?.source.stop()
  })
  afterAll(async () => {
    await folder.remove()
  })

  function identity() {
    const { key, certificate: cert } = selfSigned()
    return { key, cert }
  }

  it.each(['tcp', 'udp'])(
    'rtsps: delivers its frames, every byte of them through TLS (%s)',
    async (transport) => {
      const server = new LoopingRtspServer()
      await server.start()
      onTestFinished(() => server.stop())
      await server.addStream('/cam', clip)
      const { port } = new URL(server.url('/cam'))
      const sockets = new Set<Socket>()
      const front = createTlsServer(identity(), (near) => {
        const far = connect(Number(port), '127.0.0.1')
        for (const socket of [near, far]) sockets.add(socket)
        pipeline(near, far, () => undefined)
        pipeline(far, near, () => undefined)
      })
      front.listen(0, '127.0.0.1')
      await once(front, 'listening')
      onTestFinished(async () => {
        for (const socket of sockets) socket.destroy()
        front.close()
        await once(front, 'close')
      })
      watched = await WatchedSource.start({
        url: `rtsps://127.0.0.1:${(front.address() as AddressInfo).port}/cam`,
        transport,
      })
      await watched.untilFrames(5, 15_000)
      expect(watched.frames[0]?.source).toEqual({ widthPx: 320, heightPx: 180 })
      expect(watched.source.status.state).toBe('live')
    },
  )

  it('https: plays a list of pieces', async () => {
    const server = createHttpsServer(identity(), (request, response) => {
      createReadStream(join(folder.file('.'), basename(request.url ?? ''))).pipe(response)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    })
    watched = await WatchedSource.start({
      url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/list.m3u8`,
    })
    await watched.untilFrames(5, 15_000)
    expect(watched.source.status.state).toBe('live')
  })
})
