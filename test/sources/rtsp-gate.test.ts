import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { AddressPolicy } from '../../src/lifecycle/address-policy.js'
import { RtspGate } from '../../src/sources/rtsp-gate.js'
import { until } from '../support/until.js'

describe('RtspGate', () => {
  let server: Server
  let gate: RtspGate
  let camera: Socket
  const asked: string[] = []
  let played = 0
  let answer = '200 OK'
  const sockets: Socket[] = []
  const challenge = 'WWW-Authenticate: Digest realm="r", nonce="n"\r\n'

  beforeEach(async () => {
    server = createServer((socket) => {
      camera = socket
      socket.on('error', () => undefined)
      socket.on('data', (data) => {
        const text = data.toString('latin1')
        asked.push(text)
        const status = text.includes('Authorization:') ? answer : '401 No'
        const cseq = /CSeq: \d+/.exec(text)?.[0] ?? ''
        socket.write(`RTSP/1.0 ${status}\r\n${cseq}\r\n${challenge}\r\n`)
      })
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    gate = await RtspGate.open({
      url: `rtsp://u:s%40cret@camera.example:${(server.address() as AddressInfo).port}/s?x=1`,
      addresses: [{ address: '127.0.0.1', family: 4 }],
      nearness: 'loopback',
      policy: new AddressPolicy(),
      transport: 'tcp',
      sampleFps: 5,
      playing: () => (played += 1),
    })
  })
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy()
    await gate.close()
    server.close()
    asked.length = 0
    played = 0
    answer = '200 OK'
  })

  async function decoder(): Promise<Socket> {
    const socket = connect(Number(new URL(gate.url).port), '127.0.0.1')
    sockets.push(socket)
    socket.on('error', () => undefined)
    await once(socket, 'connect')
    return socket
  }

  const options = () => `OPTIONS ${gate.url} RTSP/1.0\r\nCSeq: 1\r\nUser-Agent: x\r\n\r\n`

  async function firstAnswer(socket: Socket): Promise<string> {
    socket.write(options())
    const [bytes] = (await once(socket, 'data')) as [Buffer]
    return bytes.toString('latin1')
  }

  it('logs in with the name that the camera knows, and tells the decoder nothing of it', async () => {
    expect(gate.url).toMatch(/^rtsp:\/\/127\.0\.0\.1:\d+\/s\?x=1$/)
    expect(await firstAnswer(await decoder())).toBe('RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n')
    expect(asked).toHaveLength(2)
    expect(asked[0]).not.toContain('Authorization')
    expect(asked[1]).toMatch(/^OPTIONS rtsp:\/\/camera\.example:\d+\/s\?x=1 RTSP\/1\.0\r\nCSeq: 2\r\n/)
    expect(asked[1]).toMatch(/Authorization: Digest username="u".*uri="rtsp:\/\/camera\.example:\d+\/s\?x=1"/)
  })

  it('says once that the camera has agreed to send', async () => {
    const socket = await decoder()
    await firstAnswer(socket)
    expect(played).toBe(0)
    for (const seq of [2, 3]) {
      socket.write(`PLAY ${gate.url} RTSP/1.0\r\nCSeq: ${seq}\r\n\r\n`)
      await once(socket, 'data')
    }
    expect(played).toBe(1)
  })

  it.each(['453 Not Enough Bandwidth', '500 Internal'])(
    'says nothing of the kind after %s',
    async (status) => {
      const socket = await decoder()
      await firstAnswer(socket)
      answer = status
      socket.write(`PLAY ${gate.url} RTSP/1.0\r\nCSeq: 2\r\n\r\n`)
      await once(socket, 'data')
      expect(played).toBe(0)
    },
  )

  it('S3: is there for one decoder, and not for pages of a browser', async () => {
    const page = await decoder()
    page.write('POST / HTTP/1.1\r\nHost: x\r\n\r\nOPTIONS rtsp://x RTSP/1.0\r\n\r\n')
    await once(page, 'close')
    await expect(decoder()).rejects.toThrow()
    expect(asked).toEqual([])
  })

  it('a camera that breaks its connection breaks that of the decoder', async () => {
    const socket = await decoder()
    await firstAnswer(socket)
    const broken = new Promise<Error>((resolve) => socket.once('error', resolve))
    camera.resetAndDestroy()
    expect(await broken).toMatchObject({ code: 'ECONNRESET' })
    expect(gate.problem).toBeUndefined()
  })

  it('passes packets on both ways, and what the decoder said last', async () => {
    const socket = await decoder()
    await firstAnswer(socket)
    const packet = Buffer.concat([Buffer.from('$\0\0\x10'), Buffer.alloc(16, 7)])
    camera.write(packet)
    const [came] = (await once(socket, 'data')) as [Buffer]
    expect(came.equals(packet)).toBe(true)
    socket.end(Buffer.concat([packet, Buffer.from(options().replace('OPTIONS', 'TEARDOWN'))]))
    await gate.close()
    await until('its farewell', () => asked.join('').includes('TEARDOWN rtsp://camera.example'))
    expect(asked.join('')).toContain(packet.toString('latin1'))
  })

  it('keeps packets for a decoder that is slow, and no more of them than it must', async () => {
    const socket = await decoder()
    await firstAnswer(socket)
    socket.pause()
    const packet = Buffer.concat([Buffer.from([0x24, 0, 0xff, 0xff]), Buffer.alloc(65_535, 7)])
    const sent = 300
    for (let at = 0; at < sent; at += 1) camera.write(packet)
    await until('the camera has to wait', () => camera.writableLength > 0)
    let bytes = 0
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length
    })
    socket.resume()
    await until('all of it', () => bytes === sent * packet.length)
  })
})
