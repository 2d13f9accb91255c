import { randomBytes } from 'node:crypto'
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { ClipPlayer, type Channel } from './clip-player.js'
import { formatRtsp, parseRtsp, type RtspRequest } from './rtsp-message.js'
import type { RtspStream } from './rtsp-stream.js'

/** A client that does not read is behind by at most this; then packets are dropped, as a camera does. */
const mostBufferedBytes = 4 * 1024 * 1024
const methods = 'OPTIONS, DESCRIBE, SETUP, PLAY, GET_PARAMETER, TEARDOWN'

type Delivery =
  | Readonly<{ kind: 'tcp'; channels: readonly [number, number] }>
  | Readonly<{ kind: 'udp'; sockets: readonly [UdpSocket, UdpSocket]; ports: readonly [number, number] }>

type Reply = (status: number, headers?: Readonly<Record<string, string>>, body?: string) => void

/** One client of the server, from its first request to its last packet. */
export class RtspConnection {
  readonly #session = randomBytes(8).toString('hex')
  #received: Buffer = Buffer.alloc(0)
  #delivery: Delivery | undefined
  #player: ClipPlayer | undefined
  #stream: RtspStream | undefined
  #queue: Promise<void> = Promise.resolve()
  #closed = false

  constructor(
    readonly socket: Socket,
    readonly find: (path: string) => RtspStream | undefined,
    readonly onClose: () => void,
  ) {
    socket.setNoDelay(true)
    socket.on('data', (chunk) => this.#data(chunk))
    socket.on('error', () => this.close())
    socket.on('close', () => this.close())
  }

  /** The path being played, if one is. */
  get playing(): string | undefined {
    return this.#player && this.#stream?.path
  }

  freeze(): void {
    this.#player?.freeze()
  }

  thaw(): void {
    this.#player?.thaw()
  }

  /** Idempotent. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#player?.stop()
    if (this.#delivery?.kind === 'udp') for (const socket of this.#delivery.sockets) socket.close()
    this.socket.destroySoon()
    this.onClose()
  }

  #data(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk])
    for (;;) {
      const parsed = parseRtsp(this.#received)
      if (parsed.kind === 'more') return
      if (parsed.kind === 'bad') return this.close()
      this.#received = this.#received.subarray(parsed.bytes)
      if (parsed.kind === 'request') {
        const { request } = parsed
        this.#queue = this.#queue.then(() => this.#answer(request)).catch(() => this.close())
      }
    }
  }

  async #answer(request: RtspRequest): Promise<void> {
    const reply: Reply = (status, headers, body) => {
      if (!this.#closed) this.socket.write(formatRtsp(status, request.headers.get('cseq'), headers, body))
    }
    if (request.method === 'OPTIONS') return reply(200, { Public: methods })
    const stream = this.find(pathOf(request.url))
    if (!stream) return reply(404)
    if (stream.auth && !stream.auth.admits(request)) {
      return reply(401, { 'WWW-Authenticate': stream.auth.challenge })
    }
    switch (request.method) {
      case 'DESCRIBE':
        return reply(
          200,
          { 'Content-Type': 'application/sdp', 'Content-Base': `${request.url}/` },
          stream.sdp,
        )
      case 'SETUP':
        return this.#setUp(request, reply)
      case 'PLAY':
        return this.#play(stream, request, reply)
      case 'GET_PARAMETER':
        return reply(200, { Session: this.#session })
      case 'TEARDOWN':
        reply(200, { Session: this.#session })
        return this.close()
      default:
        return reply(405, { Allow: methods })
    }
  }

  async #setUp(request: RtspRequest, reply: Reply): Promise<void> {
    const transport = request.headers.get('transport') ?? ''
    const interleaved = /RTP\/AVP\/TCP.*interleaved=(\d+)-(\d+)/.exec(transport)
    const clientPorts = /client_port=(\d+)-(\d+)/.exec(transport)
    const Session = `${this.#session};timeout=60`
    if (interleaved) {
      this.#delivery = { kind: 'tcp', channels: [Number(interleaved[1]), Number(interleaved[2])] }
      return reply(200, { Session, Transport: transport })
    }
    if (!clientPorts || transport.includes('RTP/AVP/TCP')) return reply(461)
    const sockets = [createSocket('udp4'), createSocket('udp4')] as const
    for (const socket of sockets) {
      socket.on('error', () => undefined)
      socket.bind(0, '127.0.0.1')
      await once(socket, 'listening')
    }
    this.#delivery = { kind: 'udp', sockets, ports: [Number(clientPorts[1]), Number(clientPorts[2])] }
    const serverPorts = sockets.map((socket) => socket.address().port).join('-')
    return reply(200, { Session, Transport: `${transport};server_port=${serverPorts}` })
  }

  async #play(stream: RtspStream, request: RtspRequest, reply: Reply): Promise<void> {
    if (!this.#delivery) return reply(454)
    this.#stream = stream
    reply(200, { Session: this.#session, 'RTP-Info': `url=${request.url}` })
    if (this.#player) return
    this.#player = new ClipPlayer(
      stream.clip,
      stream.loop,
      (channel, packet) => this.#send(channel, packet),
      () => this.close(),
    )
    await this.#player.start()
    if (this.#closed) this.#player.stop()
  }

  #send(channel: Channel, packet: Buffer): void {
    const altered = this.#stream?.alter(channel, packet)
    if (!altered || this.#closed) return
    if (this.#delivery?.kind === 'udp') {
      this.#delivery.sockets[channel].send(altered, this.#delivery.ports[channel], '127.0.0.1')
    } else if (this.#delivery && this.socket.writableLength < mostBufferedBytes) {
      const head = Buffer.from([0x24, this.#delivery.channels[channel], 0, 0])
      head.writeUInt16BE(altered.length, 2)
      this.socket.cork()
      this.socket.write(head)
      this.socket.write(altered)
      this.socket.uncork()
    }
  }
}

function pathOf(url: string): string {
  try {
    return new URL(url).pathname.replace(/\/(track0)?$/, '') || '/'
  } catch {
    return url
  }
}
