import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { redactText } from '../config/redact.js'
import { delay } from '../lifecycle/delay.js'
import { plainHost, type AddressPolicy, type CheckedAddress, type Nearness } from './address-policy.js'
import { connectToCamera } from './camera-connection.js'
import { CameraLogin, loginFailure, type LoginMemory } from './camera-login.js'
import { type Failure, networkFailures } from './failure-reason.js'
import { cleanAnswer, textOf, type PacketRules } from './rtsp-answer.js'
import { CameraAnswerError, RtspSplitter, type RtspMessage } from './rtsp-splitter.js'

/** Read at once; a picture is some ten thousand bytes. */
const readBytes = 64 * 1024
/** Requests that a camera may leave unanswered, as some do with those that keep a session alive. */
const mostOpen = 16
/** How long the decoder's last words may take to the camera. */
const farewellMs = 500

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
  signal?: AbortSignal
  /** The camera has agreed to send: called once. */
  playing?(): void
}>

/** A request of the decoder that the camera has not answered. */
type Open = Readonly<{ decoderSeq: string; method: string; uri: string; message: RtspMessage }> & {
  seq: number
  login: boolean
}

/**
 * The only way of a decoder to its RTSP camera: it connects here, and the camera was connected to at an address that was checked.
 *
 * The decoder would follow a redirect without asking anyone, and send reports to any address that the camera names; so what camera and
 * decoder say to each other is read here and written anew. The camera is spoken to by its own URL, by which it counts its digests: the
 * login is ours to give, and so is TLS. Packets are not looked at. Those over UDP go past this gate, between addresses that it checked.
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
  #decoder: Socket | undefined
  #seq = 0
  #playing = false
  #problem: Failure | undefined

  private constructor(
    readonly options: RtspGateOptions,
    server: Server,
    camera: Socket,
  ) {
    const url = new URL(options.url)
    this.#server = server
    this.#camera = camera
    this.#login = CameraLogin.of(url, options.logins)
    this.#ownBase = baseOf(server)
    this.#cameraBase = `${url.protocol}//${url.hostname}:${portOf(url)}`
    this.#rules = {
      own: camera.remoteAddress ?? '',
      refusal: (address) => options.policy.refusalFrom(address, options.nearness),
    }
    this.#fromCamera = new RtspSplitter({
      packets: (bytes) => this.#tellDecoder(bytes),
      message: (message) => this.#cameraSays(message),
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

  #cameraGone(): void {
    if (this.#decoder === undefined) this.#problem ??= { reason: networkFailures.reset, retry: 'normal' }
    this.#decoder?.end()
  }

  /** @returns false when the decoder must take what it has been given before more is read into the same memory. */
  #received(bytes: Buffer): boolean {
    this.#guarded(() => this.#fromCamera.write(bytes))
    if ((this.#decoder?.writableLength ?? 0) === 0) return true
    this.#decoder?.write(nothing, () => this.#camera.resume())
    return false
  }

  #tellDecoder(bytes: Buffer): void {
    if (this.#decoder?.writable === true) this.#decoder.write(bytes)
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
    const open = { decoderSeq: seq, method, uri: cameraUri, message, seq: 0, login: false }
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
    if (status >= 300 && status < 400) return this.#redirected(message)
    if (status === 401) {
      const challenges = headersOf(message, 'www-authenticate')
      if (this.#login?.challenged(challenges, open.login) === true) {
        this.#open.unshift(open)
        return this.#ask(open)
      }
      if (!this.#playing) this.#problem ??= loginFailure(this.#login, challenges)
    } else if (open.login && status < 300) this.#login?.informed(headersOf(message, 'authentication-info'))
    if (open.method === 'PLAY' && status < 300) this.#begun()
    this.#tellDecoder(cleanAnswer(message, open.decoderSeq, open.uri, this.#rules))
  }

  #begun(): void {
    if (!this.#playing) this.options.playing?.()
    this.#playing = true
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

  #leave(reason: string, retry: Failure['retry']): void {
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
