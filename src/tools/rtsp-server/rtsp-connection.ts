import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { ClipPlayer, type PacketSink } from './clip-player.js'
import { RtspAuth } from './rtsp-auth.js'
import { RtspParser, rtspResponse, type RtspRequest } from './rtsp-message.js'
import { payloadType, type Channels } from './rtp-packets.js'
import type { ServedStream } from './served-stream.js'
import { TcpSink, UdpSink } from './packet-sinks.js'

type Session = { id: string; stream: ServedStream; player: ClipPlayer; sink: PacketSink & { close(): void } }

/** Requests that may wait for their answers, and bytes of answers that a client may leave unread; with more it is cut off. */
const mostWaiting = 32
const mostUnreadBytes = 4 * 1024 * 1024
/** A client that has not been heard of for so many of the times that a session is kept for is gone. */
const goneAfter = 1.5

/** One client: answers its requests, in the order that they came in, and sends its stream. */
export class RtspConnection {
  #session: Session | undefined
  readonly #auths = new Map<ServedStream, RtspAuth>()
  readonly #parser = new RtspParser((request) => this.#inTurn(request))
  #turn: Promise<void> = Promise.resolve()
  #waiting = 0
  readonly #goneTimer: NodeJS.Timeout

  /** @param sessionSeconds - how long a session is kept for a client that says nothing. */
  constructor(
    readonly socket: Socket,
    readonly streamAt: (path: string) => ServedStream | undefined,
    readonly sessionSeconds: number,
  ) {
    this.#goneTimer = setTimeout(() => socket.destroy(), goneAfter * sessionSeconds * 1_000)
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => {
      this.#goneTimer.refresh()
      if (!this.#parser.write(chunk)) socket.destroy()
    })
    socket.on('error', () => socket.destroy())
    socket.on('close', () => {
      clearTimeout(this.#goneTimer)
      this.#endSession()
    })
  }

  /** What it plays, or is about to. */
  get stream(): ServedStream | undefined {
    return this.#session?.stream
  }

  /** Idempotent. */
  close(): void {
    this.socket.resetAndDestroy()
  }

  /** Some answers take a while: that to the next request would be out before them. */
  #inTurn(request: RtspRequest): void {
    this.#waiting += 1
    if (this.#waiting > mostWaiting || this.socket.writableLength > mostUnreadBytes)
      return void this.socket.destroy()
    this.#turn = this.#turn
      .then(() => this.#answer(request))
      .catch(() => void this.socket.destroy())
      .finally(() => (this.#waiting -= 1))
  }

  async #answer(request: RtspRequest): Promise<void> {
    if (request.method === 'OPTIONS')
      return this.#reply(200, request, { Public: 'OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN, GET_PARAMETER' })
    const stream = this.streamAt(pathOf(request.url))
    if (stream === undefined) return this.#reply(404, request)
    const auth = this.#authOf(stream)
    if (auth !== undefined && !auth.accepts(request))
      return this.#reply(401, request, { 'WWW-Authenticate': auth.challenge })
    switch (request.method) {
      case 'DESCRIBE':
        return this.#describe(request, stream)
      case 'SETUP':
        return this.#setUp(request, stream)
      case 'PLAY':
        return this.#play(request)
      case 'TEARDOWN':
        stream.teardowns += 1
        this.#reply(200, request)
        return this.#endSession()
      case 'GET_PARAMETER':
      case 'SET_PARAMETER':
        return this.#reply(200, request, this.#sessionHeader())
      default:
        return this.#reply(501, request)
    }
  }

  #authOf(stream: ServedStream): RtspAuth | undefined {
    const { credentials } = stream.options
    if (credentials === undefined) return undefined
    const auth = this.#auths.get(stream) ?? new RtspAuth(credentials)
    this.#auths.set(stream, auth)
    return auth
  }

  #describe(request: RtspRequest, stream: ServedStream): void {
    const { sps, pps } = stream.clip
    const body = [
      'v=0',
      'o=- 0 0 IN IP4 127.0.0.1',
      's=gantry',
      'c=IN IP4 0.0.0.0',
      't=0 0',
      'a=range:npt=now-',
      `m=video 0 RTP/AVP ${payloadType}`,
      `a=rtpmap:${payloadType} H264/90000`,
      `a=fmtp:${payloadType} packetization-mode=1;profile-level-id=${sps.toString('hex', 1, 4)};` +
        `sprop-parameter-sets=${sps.toString('base64')},${pps.toString('base64')}`,
      'a=control:trackID=0',
      '',
    ].join('\r\n')
    const base = request.url.endsWith('/') ? request.url : `${request.url}/`
    this.#reply(200, request, { 'Content-Type': 'application/sdp', 'Content-Base': base }, body)
  }

  async #setUp(request: RtspRequest, stream: ServedStream): Promise<void> {
    if (stream.full && this.#session === undefined) return this.#reply(453, request)
    const asked = request.headers.get('transport') ?? ''
    const offered = stream.options.transports ?? ['tcp', 'udp']
    const wanted = /RTP\/AVP\/TCP/i.test(asked) ? 'tcp' : 'udp'
    const ports = /client_port=(\d+)-(\d+)/.exec(asked)
    if (!offered.includes(wanted) || (wanted === 'udp' && ports === null)) return this.#reply(461, request)
    this.#endSession()
    if (wanted === 'tcp') {
      const channels = channelsIn(asked)
      this.#begin(stream, new TcpSink(this.socket, channels))
      const transport = `RTP/AVP/TCP;unicast;interleaved=${channels.join('-')}`
      return this.#reply(200, request, { ...this.#sessionHeader(), Transport: transport })
    }
    const sink = await UdpSink.open(this.socket, Number(ports?.[1]), Number(ports?.[2]))
    this.#begin(stream, sink)
    const transport = `RTP/AVP;unicast;client_port=${ports?.[1]}-${ports?.[2]};server_port=${sink.ports.join('-')}`
    this.#reply(200, request, { ...this.#sessionHeader(), Transport: transport })
  }

  #begin(stream: ServedStream, sink: Session['sink']): void {
    stream.entered()
    const id = randomBytes(8).toString('hex')
    this.#session = { id, stream, sink, player: new ClipPlayer(stream, sink) }
    if (this.socket.destroyed) this.#endSession()
  }

  #play(request: RtspRequest): void {
    const session = this.#session
    if (session === undefined) return this.#reply(454, request)
    const { player } = session
    this.#reply(200, request, {
      ...this.#sessionHeader(),
      Range: 'npt=now-',
      'RTP-Info': `url=${request.url};seq=${player.sender.sequence};rtptime=${player.firstRtpTime >>> 0}`,
    })
    player.start()
  }

  #endSession(): void {
    const session = this.#session
    this.#session = undefined
    session?.player.stop()
    session?.sink.close()
    session?.stream.left()
  }

  #sessionHeader(): Record<string, string> {
    return this.#session === undefined
      ? {}
      : { Session: `${this.#session.id};timeout=${this.sessionSeconds}` }
  }

  #reply(status: number, request: RtspRequest, headers: Record<string, string> = {}, body = ''): void {
    if (!this.socket.destroyed) this.socket.write(rtspResponse(status, request, headers, body))
  }
}

/** Those of a client that names none are the first two. */
function channelsIn(asked: string): Channels {
  const [, rtp = 0, rtcp = 1] = (/interleaved=(\d{1,3})-(\d{1,3})/.exec(asked) ?? []).map(Number)
  return [rtp & 0xff, rtcp & 0xff]
}

/** Path of a stream, without the track and a trailing slash. */
function pathOf(url: string): string {
  const path = /^[a-z]+:\/\/[^/]*(\/[^?]*)?/i.exec(url)?.[1] ?? url
  return path.replace(/\/trackID=\d+$/, '').replace(/\/+$/, '')
}
