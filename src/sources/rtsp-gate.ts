import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { redactText } from '../config/redact.js'
import { nowMs } from '../lifecycle/clock.js'
import { delay } from '../lifecycle/delay.js'
import {
  plainHost,
  type AddressPolicy,
  type CheckedAddress,
  type Nearness,
} from '../lifecycle/address-policy.js'
import { connectToCamera } from './camera-connection.js'
import { CameraLogin, loginFailure, type LoginMemory } from './camera-login.js'
import { CatchUp } from './catch-up.js'
import { KeyFrameKeeper, type KeyFramePackets } from './key-frame-keeper.js'
import { type Failure, networkFailures } from './failure-reason.js'
import { PictureEnds } from './picture-ends.js'
import { cleanAnswer, textOf, type PacketRules } from './rtsp-answer.js'
import { CameraAnswerError, RtspSplitter, type RtspMessage } from './rtsp-splitter.js'
import type { SignsOfLife } from './session.js'
import { SessionKeeper } from './session-keeper.js'

/** Read at once; a picture is some ten thousand bytes. */
const readBytes = 64 * 1024
/** Requests that a camera may leave unanswered, as some do with those that keep a session alive. */
const mostOpen = 16
/** In the byte that says what a packet carries: it is the last one of a picture. */
const marked = 0x80
/** How long the decoder's last words may take to the camera. */
const farewellMs = 500
/** How long an answer may take while the session is begun. */
const answerMs = 10_000

const standardPorts: Readonly<Record<string, number>> = { 'rtsp:': 554, 'rtsps:': 322 }

export type RtspGateOptions = Readonly<{
  /** The camera's, with its login. */
  url: string
  /** Of its host, checked. */
  addresses: readonly CheckedAddress[]
  /** Of the camera itself. */
  nearness: Nearness
  policy: AddressPolicy
  transport: 'tcp' | 'udp'
  /** What earlier logins have taught about the camera. */
  logins?: LoginMemory
  sampleFps: number
  /** A copy of the newest key frame is kept. Absent: it is. */
  keepsKeyFrames?: boolean
  signal?: AbortSignal
  /** The camera has agreed to send: called once. */
  playing?(): void
  /** The decoder was behind, and pictures were left out for it. @param detail - for people. */
  behind?(detail: string): void
}>

/** A request that the camera has not answered: the decoder's, or one of ours, which has no number of its own. */
type Open = Readonly<{
  decoderSeq: string | undefined
  method: string
  uri: string
  message: RtspMessage
}> & {
  seq: number
  login: boolean
}

/**
 * The only way of a decoder to its RTSP camera: it connects here, and the camera was connected to at an address that was checked.
 *
 * The decoder would follow a redirect without asking anyone, and send reports to any address that the camera names; so what camera and
 * decoder say to each other is read here and written anew. The camera is spoken to by its own URL, by which it counts its digests: the
 * login is ours to give, and so is TLS. Of packets the head is looked at, and the beginning of what follows. Those over UDP go past this gate, between addresses that it checked.
 */
export class RtspGate {
  readonly #server: Server
  readonly #camera: Socket
  readonly #login: CameraLogin | undefined
  /** Scheme, host and port, as the decoder and the camera know them. */
  readonly #ownBase: string
  readonly #cameraBase: string
  readonly #rules: PacketRules
  readonly #open: Open[] = []
  readonly #fromCamera: RtspSplitter
  readonly #fromDecoder: RtspSplitter
  readonly #ends: PictureEnds
  readonly #catchUp: CatchUp
  readonly #keeper = new SessionKeeper(nowMs())
  readonly #keyFrames: KeyFrameKeeper | undefined
  #answerTimer: NodeJS.Timeout | undefined
  #keepTimer: NodeJS.Timeout | undefined
  #decoder: Socket | undefined
  /** When the bytes at hand were read; one look at the clock for all packets in them. */
  #receivedMs = 0
  #seq = 0
  #playing = false
  #problem: Failure | undefined

  private constructor(
    readonly options: RtspGateOptions,
    server: Server,
    camera: Socket,
  ) {
    const url = new URL(options.url)
    this.#keyFrames = options.keepsKeyFrames === false ? undefined : new KeyFrameKeeper()
    this.#server = server
    this.#camera = camera
    this.#login = CameraLogin.of(url, options.logins)
    this.#ownBase = baseOf(server)
    this.#cameraBase = `${url.protocol}//${url.hostname}:${portOf(url)}`
    this.#rules = {
      own: camera.remoteAddress ?? '',
      refusal: (address) => options.policy.refusalFrom(address, options.nearness),
    }
    this.#catchUp = new CatchUp({
      sampleFps: options.sampleFps,
      left: (detail) => options.behind?.(detail),
    })
    this.#ends = new PictureEnds({
      sampleFps: options.sampleFps,
      packets: () => this.#fromCamera.mediaPackets,
      send: (packet) => this.#fromCamera.isBetween && this.#tellDecoder(packet),
    })
    this.#fromCamera = new RtspSplitter({
      packets: (bytes) => void this.#tellDecoder(bytes),
      message: (message) => this.#cameraSays(message),
      media: (bytes, at) => this.#media(bytes, at),
    })
    this.#fromDecoder = new RtspSplitter({
      packets: (bytes) => this.#tellCamera(bytes),
      message: (message) => this.#decoderSays(message),
    })
    server.on('connection', (socket) => this.#serve(socket))
    server.on('error', () => camera.destroy())
    camera.on('error', () => this.#decoder?.resetAndDestroy())
    camera.on('close', () => this.#cameraGone())
  }

  /** @throws what {@link connectToCamera} throws, and what the system has against a port of our own. */
  static async open(options: RtspGateOptions): Promise<RtspGate> {
    const url = new URL(options.url)
    const secure = url.protocol === 'rtsps:'
    const memory = Buffer.allocUnsafeSlow(readBytes)
    let received: (bytes: Buffer) => boolean = () => true
    const endpoint = { host: plainHost(url.hostname), port: portOf(url), secure }
    const camera = await connectToCamera(endpoint, options.addresses, options.signal, {
      buffer: memory,
      callback: (bytes) => received(memory.subarray(0, bytes)),
    })
    try {
      const server = createServer({ noDelay: true })
      // The decoder sends reports by UDP from the family of the address that it finds us at.
      const family6 = camera.remoteFamily === 'IPv6' && options.transport === 'udp'
      server.listen(0, family6 ? '::1' : '127.0.0.1')
      await once(server, 'listening')
      const gate = new RtspGate(options, server, camera)
      received = (bytes) => gate.#received(bytes)
      if (secure) camera.on('data', (bytes: Buffer) => gate.#received(bytes) || camera.pause())
      return gate
    } catch (error) {
      camera.destroy()
      throw error
    }
  }

  /** The camera's URL as the decoder may have it: by way of this gate, and without its login. */
  get url(): string {
    const { pathname, search } = new URL(this.options.url)
    return `${this.#ownBase}${pathname}${search}`
  }

  /** Why the camera was left; undefined while nothing speaks against it. */
  get problem(): Failure | undefined {
    return this.#problem
  }

  /** Packets of pictures that have come by way of this gate; undefined where they go past it. */
  get mediaPackets(): number | undefined {
    return this.options.transport === 'udp' ? undefined : this.#fromCamera.mediaPackets
  }

  /** The newest key frame; undefined where none has come by way of this gate. */
  get keyFrame(): KeyFramePackets | undefined {
    return this.#keyFrames?.last
  }

  /** Of a camera that plays. */
  get signs(): SignsOfLife {
    const pictures = this.options.transport === 'udp' ? undefined : this.#fromCamera.pictures
    return this.#keeper.signs(nowMs(), pictures)
  }

  /** The decoder has shown a picture. @param ptsMs - its time as the decoder tells it. @returns as the camera means it. */
  shown(ptsMs: number | null): number | null {
    const isMs = this.#ends.timeOf(ptsMs)
    this.#catchUp.shown(isMs, nowMs())
    return isMs
  }

  /** With the camera's name in place of this gate's. */
  plain(text: string): string {
    return text.replaceAll(this.#ownBase, this.#cameraBase)
  }

  /** Passes on what the decoder said last, and ends. */
  async close(): Promise<void> {
    this.#server.close()
    if (this.#decoder !== undefined && !this.#camera.destroyed) {
      const cut = new AbortController()
      await Promise.race([once(this.#camera, 'close'), delay(farewellMs, cut.signal)])
      cut.abort()
    }
    this.#decoder?.destroy()
    this.#camera.destroy()
    this.#stopTimers()
  }

  /** For the decoder alone, which connects once. */
  #serve(decoder: Socket): void {
    this.#server.close()
    if (this.#decoder !== undefined) return void decoder.destroy()
    this.#decoder = decoder
    decoder.on('error', () => undefined)
    decoder.on('data', (bytes) => {
      // No page of a browser that found the port.
      if (this.#seq === 0 && !bytes.toString('latin1').startsWith(`OPTIONS ${this.#ownBase}`))
        decoder.destroy()
      else this.#guarded(() => this.#fromDecoder.write(bytes))
    })
    decoder.on('end', () => this.#camera.end(() => this.#camera.destroy()))
    decoder.on('close', () => this.#camera.end(() => this.#camera.destroy()))
    if (this.#camera.destroyed) decoder.destroy()
  }

  #stopTimers(): void {
    this.#ends.close()
    clearTimeout(this.#answerTimer)
    clearInterval(this.#keepTimer)
  }

  #cameraGone(): void {
    this.#stopTimers()
    if (this.#decoder === undefined) this.#problem ??= { reason: networkFailures.reset, retry: 'normal' }
    this.#decoder?.end()
  }

  /** @returns false when the decoder must take what it has been given before more is read into the same memory. */
  #received(bytes: Buffer): boolean {
    const before = this.#fromCamera.mediaPackets
    this.#receivedMs = nowMs()
    this.#keyFrames?.received(bytes)
    this.#guarded(() => this.#fromCamera.write(bytes))
    this.#keeper.heard(this.#receivedMs)
    if (this.#fromCamera.mediaPackets > before) this.#keeper.sent(this.#receivedMs)
    const isWaiting = (this.#decoder?.writableLength ?? 0) > 0
    this.#catchUp.waits(isWaiting, this.#receivedMs)
    if (!isWaiting || this.#catchUp.isSkipping) return true
    this.#decoder?.write(nothing, () => {
      this.#catchUp.waits(false, nowMs())
      this.#camera.resume()
    })
    return false
  }

  #media(bytes: Buffer, at: number): boolean {
    if (!this.#catchUp.passes(bytes, at, this.#receivedMs)) {
      this.#keyFrames?.leftOut()
      return false
    }
    this.#keyFrames?.packet(bytes, at)
    if ((bytes[at + 5] ?? 0) >= marked) this.#ends.ended(bytes, at)
    return true
  }

  #tellDecoder(bytes: Buffer): boolean {
    if (this.#decoder?.writable !== true) return false
    this.#decoder.write(bytes)
    return true
  }

  #tellCamera(bytes: Buffer): void {
    if (this.#camera.writable) this.#camera.write(bytes)
  }

  #decoderSays(message: RtspMessage): void {
    const [method = '', uri = ''] = message.first.split(' ')
    if (method.startsWith('RTSP/'))
      return this.#tellCamera(textOf(message.first, message.headers, message.body))
    const seq = headersOf(message, 'cseq')[0] ?? '0'
    const cameraUri = uri.startsWith(this.#ownBase) ? this.#cameraBase + uri.slice(this.#ownBase.length) : uri
    this.#queue({ decoderSeq: seq, method, uri: cameraUri, message, seq: 0, login: false })
  }

  #queue(open: Open): void {
    if (this.#open.push(open) > mostOpen) this.#open.shift()
    this.#ask(open)
  }

  #ask(open: Open): void {
    const login = this.#login?.answer(open.method, open.uri, open.message.body)
    open.seq = this.#seq += 1
    open.login = login !== undefined
    const others = open.message.headers.filter(([name]) => !/^(cseq|authorization)$/i.test(name))
    const headers = [['CSeq', String(open.seq)] as const, ...others]
    if (login !== undefined) headers.push(['Authorization', login])
    this.#keeper.asked(nowMs())
    clearTimeout(this.#answerTimer)
    if (!this.#playing) this.#answerTimer = setTimeout(() => this.#leave(networkFailures.timedOut), answerMs)
    this.#tellCamera(textOf(`${open.method} ${open.uri} RTSP/1.0`, headers, open.message.body))
  }

  #cameraSays(message: RtspMessage): void {
    const status = Number(/^RTSP\/\d\.\d (\d{3})/.exec(message.first)?.[1] ?? 0)
    if (status === 0) return this.#cameraAsks(message)
    if (status < 200) return
    const seq = Number(headersOf(message, 'cseq')[0])
    const place = Math.max(
      0,
      this.#open.findIndex((each) => each.seq === seq),
    )
    const open = this.#open.splice(0, place + 1).at(-1)
    if (open === undefined) return
    clearTimeout(this.#answerTimer)
    this.#keeper.learn(message)
    if (status >= 300 && status < 400) return this.#redirected(message)
    if (status === 401) {
      const challenges = headersOf(message, 'www-authenticate')
      if (this.#login?.challenged(challenges, open.login) === true) {
        this.#open.unshift(open)
        return this.#ask(open)
      }
      if (!this.#playing) this.#problem ??= loginFailure(this.#login, challenges)
    } else if (open.login && status < 300) this.#login?.informed(headersOf(message, 'authentication-info'))
    if (open.decoderSeq === undefined) return this.#keeper.answered(status)
    if (open.method === 'DESCRIBE') this.#described(message.body.toString('latin1'))
    if (open.method === 'PLAY' && status < 300) this.#begun(open.uri)
    this.#tellDecoder(cleanAnswer(message, open.decoderSeq, open.uri, this.#rules))
  }

  #described(sdp: string): void {
    this.#ends.described(sdp)
    this.#keyFrames?.described(sdp)
    this.#catchUp.described(sdp)
  }

  #begun(uri: string): void {
    if (this.#playing) return
    this.#playing = true
    this.#keeper.plays(nowMs())
    this.#keepTimer = setInterval(() => this.#keep(uri), this.#keeper.everyMs)
    this.options.playing?.()
  }

  /** Never inside of a packet of the decoder. */
  #keep(uri: string): void {
    const kept = this.#fromDecoder.isBetween ? this.#keeper.next(nowMs()) : undefined
    if (kept === undefined) return
    const headers = kept.session === undefined ? [] : [['Session', kept.session] as const]
    const message = { first: '', headers, body: nothing }
    this.#queue({ decoderSeq: undefined, method: kept.method, uri, message, seq: 0, login: false })
  }

  #cameraAsks(message: RtspMessage): void {
    if (message.first.startsWith('REDIRECT ')) return this.#redirected(message)
    this.#tellDecoder(cleanAnswer(message, headersOf(message, 'cseq')[0] ?? '0', '', this.#rules))
  }

  /** Nobody has looked at that address, and it may be a service of this machine. */
  #redirected(message: RtspMessage): void {
    const place = headersOf(message, 'location')[0] ?? 'another address'
    this.#leave(`the camera redirects to ${redactText(place)}: name that address`, 'slow')
  }

  #guarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      if (!(error instanceof CameraAnswerError)) throw error
      this.#leave(error.message, 'slow')
    }
  }

  #leave(reason: string, retry: Failure['retry'] = 'normal'): void {
    this.#stopTimers()
    this.#problem ??= { reason, retry }
    this.#camera.destroy()
    this.#decoder?.destroy()
  }
}

const nothing = Buffer.alloc(0)

function headersOf(message: RtspMessage, wanted: string): string[] {
  return message.headers.filter(([name]) => name.toLowerCase() === wanted).map(([, value]) => value)
}

function baseOf(server: Server): string {
  const { address, family, port } = server.address() as AddressInfo
  return `rtsp://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

function portOf({ port, protocol }: URL): number {
  return Number(port) || (standardPorts[protocol] ?? 554)
}
