import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { pipeline } from 'node:stream'
import type { AddressPolicy, CheckedAddress, Nearness } from '../lifecycle/address-policy.js'
import { connectionFailure, connectToCamera, unreachable } from './camera-connection.js'
import { CameraLogin, type LoginMemory } from './camera-login.js'
import type { Failure } from './failure-reason.js'
import { GateNames, hostIn, type Named } from './gate-names.js'
import { readHttpBody } from './http-body.js'
import { contentOf, isOnePicture, type HttpContent } from './http-content.js'
import { headerIn, httpHead, readHttpHead, type HttpHead } from './http-head.js'
import { askLoggedIn } from './login-rounds.js'
import { PlayListError, rewritePlayList } from './play-list.js'

export type HttpGateOptions = Readonly<{
  /** The camera's, with its login. */
  url: string
  policy: AddressPolicy
  /** Nearness of the camera itself: what it refers to must not be nearer. */
  nearness: Nearness
  /** Whether the camera is taken for a play list; the decoder reads no play list but as this gate writes it. */
  playList: boolean
  /** What earlier logins have taught about the camera. */
  logins?: LoginMemory
  /** The camera turned out to be something else: `snapshot` where that is yet to be looked at. */
  mistaken(content: HttpContent): void
  /** It has begun to answer; called for each connection of a stream. */
  playing?(): void
}>

type Request = Readonly<{
  named: Named
  method: string
  target: string
  url: URL
  headers: HttpHead['headers']
}>

/** A camera that was reached; without a reply it ended the connection. */
type Asked = Readonly<{ upstream: Socket; reply: HttpHead | undefined }>

const ofConnection = /^((proxy-)?connection|keep-alive)$/i
/** Said of an answer to a decoder that reads a play list; the rest is ours to say. */
const toldOfList = /^set-cookie$/i
/** A login is given here, and the decoder knows nothing of it. */
const ofLogin = /^(www-authenticate|authentication-info)$/i

/**
 * The only way out for the decoder of an HTTP camera: a proxy on loopback, which fetches for it from allowed addresses alone.
 *
 * ffmpeg follows redirects, and play lists name further URLs, without asking anyone. Here each of them gets a name that only this gate
 * understands ({@link GateNames}), is looked up once, checked, and connected to at the very address that was checked; play lists are
 * written anew. TLS is spoken here, and so is the login, which goes to the camera's own address alone: the decoder needs no protocol but
 * plain HTTP to this gate.
 */
export class HttpGate {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #names = new GateNames()
  readonly #camera: URL
  readonly #login: CameraLogin | undefined
  #hasList = false
  #problem: Failure | undefined

  private constructor(readonly options: HttpGateOptions) {
    this.#camera = new URL(options.url)
    this.#login = CameraLogin.of(this.#camera, options.logins)
    this.#camera.username = ''
    this.#camera.password = ''
    this.#server = createServer({ noDelay: true }, (client) => {
      this.#keep(client)
      this.#serve(client).catch((error: unknown) => {
        this.#problem = connectionFailure(error)
        client.destroy()
      })
    })
    // A connection that cannot be taken.
    this.#server.on('error', (error) => (this.#problem = connectionFailure(error)))
  }

  static async open(options: HttpGateOptions): Promise<HttpGate> {
    const gate = new HttpGate(options)
    gate.#server.listen(0, '127.0.0.1')
    await once(gate.#server, 'listening')
    return gate
  }

  get proxyUrl(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** The camera's URL as the decoder may have it: without its login. */
  get url(): string {
    return this.#names.nameOf(this.options.playList ? 'list' : 'media', this.#camera)
  }

  /** Why the latest connection was not opened, or its answer not handed on; undefined when it was. */
  get problem(): Failure | undefined {
    return this.#problem
  }

  /** With the stream's names in place of this gate's. */
  plain(text: string): string {
    return this.#names.plain(text)
  }

  close(): Promise<void> {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    return Promise.resolve()
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    // Either side may go at any time; the other is told by the pipeline.
    socket.on('error', () => undefined)
  }

  async #serve(client: Socket): Promise<void> {
    const head = await readHttpHead(client)
    const request = head === undefined ? undefined : this.#read(head)
    if (request === undefined) return answer(client, '400 Bad Request')
    const addresses = await this.#addressesOf(request.named.host)
    if (addresses === undefined) return answer(client, '403 Forbidden')
    const asked = await this.#ask(request, addresses, client)
    if (asked === undefined) return answer(client, '502 Bad Gateway')
    const { upstream, reply } = asked
    if (reply === undefined) return void client.destroy()
    if (request.named.content === 'list') return this.#handOnList(client, upstream, request, reply)
    const other = this.#otherContent(reply)
    if (other !== undefined) {
      upstream.destroy()
      this.options.mistaken(other)
      return answer(client, '502 Bad Gateway')
    }
    if (/^HTTP\/1\.\d 2/.test(reply.first)) this.options.playing?.()
    const headers = this.#located(request, reply.headers).filter(
      ([name]) => !ofConnection.test(name) && !ofLogin.test(name),
    )
    client.write(httpHead(reply.first, [...headers, ['Connection', 'close']]), 'latin1')
    client.write(reply.rest)
    pipeline(upstream, client, () => undefined)
  }

  /** @returns undefined where the camera is not reached. */
  async #ask(
    request: Request,
    addresses: readonly CheckedAddress[],
    client: Socket,
  ): Promise<Asked | undefined> {
    // A decoder that answers by itself does so for an address whose login a play list has named.
    const isCamera = request.url.origin === this.#camera.origin && !ownLogin(request)
    const path = pathOf(request.target)
    client.resume()
    const { answer, refused } = await askLoggedIn<Asked | undefined>(isCamera ? this.#login : undefined, {
      method: request.method,
      path,
      ask: (authorization) => this.#exchange(request, addresses, client, { path, authorization }),
      headOf: (asked) => asked?.reply,
      pass: (asked) => void asked?.upstream.destroy(),
    })
    if (refused !== undefined && !ownLogin(request)) this.#problem = refused
    return answer
  }

  async #exchange(
    request: Request,
    addresses: readonly CheckedAddress[],
    client: Socket,
    said: Readonly<{ path: string; authorization: string | undefined }>,
  ): Promise<Asked | undefined> {
    const upstream = await this.#connect(request.named, addresses)
    if (upstream === undefined) return undefined
    this.#problem = undefined
    client.once('close', () => upstream.destroy())
    upstream.write(this.#headFor(request, said.path, said.authorization), 'latin1')
    return { upstream, reply: await readHttpHead(upstream) }
  }

  /** @returns undefined for what this gate has not named, so that pages of a browser cannot use it. */
  #read({ first, headers }: HttpHead): Request | undefined {
    const [, method = '', target = ''] = /^(GET|HEAD) (\S+) HTTP\/1\.[01]$/.exec(first) ?? []
    if (!/^http:/i.test(target) || !URL.canParse(target)) return undefined
    const { hostname, port, pathname, search } = new URL(target)
    const named = this.#names.read(hostname, port)
    if (named === undefined) return undefined
    const url = new URL(
      `${named.secure ? 'https' : 'http'}://${hostIn(named)}:${named.port}${pathname}${search}`,
    )
    return { named, method, target, url, headers }
  }

  #headFor(
    { method, url, headers, named }: Request,
    path: string,
    authorization: string | undefined,
  ): string {
    const whole = named.content === 'list' ? /^range$/i : undefined
    const kept = headers.filter(
      ([name]) =>
        !/^(host|proxy-authorization)$/i.test(name) &&
        !ofConnection.test(name) &&
        !whole?.test(name) &&
        (authorization === undefined || !/^authorization$/i.test(name)),
    )
    const login = authorization === undefined ? [] : [['Authorization', authorization] as const]
    return httpHead(`${method} ${path} HTTP/1.1`, [
      ['Host', url.host],
      ...kept,
      ...login,
      ['Connection', 'close'],
    ])
  }

  async #addressesOf(host: string): Promise<readonly CheckedAddress[] | undefined> {
    const found = await this.options.policy.resolve(host, this.options.nearness)
    if (found.kind === 'open') return found.addresses
    this.#problem = unreachable(found)
    return undefined
  }

  async #connect(named: Named, addresses: readonly CheckedAddress[]): Promise<Socket | undefined> {
    try {
      const upstream = await connectToCamera(named, addresses)
      this.#keep(upstream)
      return upstream
    } catch (error) {
      this.#problem = connectionFailure(error)
      return undefined
    }
  }

  /** A decoder that was not told of a play list does not know the format, and pictures are not for this gate. */
  #otherContent(reply: HttpHead): HttpContent | undefined {
    if (this.options.playList || !/^HTTP\/1\.\d 2/.test(reply.first)) return undefined
    const content = contentOf(reply, reply.rest)
    if (content === 'list') return content
    const length = headerIn(reply, 'content-length')
    const isEndless = length === undefined || isOnePicture(reply, Number(length))
    return content === 'pictures' || (content === 'snapshot' && reply.rest.length > 0 && isEndless)
      ? 'snapshot'
      : undefined
  }

  async #handOnList(client: Socket, upstream: Socket, request: Request, reply: HttpHead): Promise<void> {
    const [, status = '', reason = ''] = /^\S+ (\d{3}) ?(.*)$/.exec(reply.first) ?? []
    const told = reply.headers.filter(([name]) => toldOfList.test(name))
    const place = this.#located(request, reply.headers).filter(([name]) => /^location$/i.test(name))
    const isMoved = status.startsWith('3') && place.length > 0
    if (Number(status) >= 400 || isMoved) {
      upstream.destroy()
      return answer(client, `${status} ${reason}`, [...told, ...place])
    }
    const body = await readHttpBody(upstream, reply)
    upstream.destroy()
    try {
      if (body === undefined) throw new PlayListError('the play list cannot be read')
      const list = rewritePlayList(body.toString('utf8'), request.url, (content, url) =>
        this.#names.nameOf(content, url),
      )
      this.#hasList = true
      answer(client, '200 OK', [...told, ['Content-Type', 'application/vnd.apple.mpegurl']], list)
    } catch (error) {
      if (!(error instanceof PlayListError)) throw error
      this.#problem = { reason: error.message, retry: 'slow' }
      if (!this.#hasList && !body?.toString('latin1').startsWith('#EXTM3U')) this.options.mistaken('snapshot')
      answer(client, '502 Bad Gateway')
    }
  }

  /** With the place of a redirect under its name here; one that is no web address is left out. */
  #located(request: Request, headers: HttpHead['headers']): HttpHead['headers'] {
    return headers.flatMap(([name, value]): HttpHead['headers'] => {
      if (!/^\s*location\s*$/i.test(name)) return [[name, value]]
      const url = URL.canParse(value, request.url.href) ? new URL(value, request.url) : undefined
      if (url?.protocol !== 'http:' && url?.protocol !== 'https:') return []
      return [['Location', this.#names.nameOf(request.named.content, url)]]
    })
  }
}

/** The path as the decoder wrote it: a signature covers these very bytes. */
function pathOf(target: string): string {
  return target.replace(/^http:\/\/[^/?]*/i, '').replace(/^(?!\/)/, '/')
}

/** The decoder has answered a challenge by itself. */
function ownLogin({ headers }: Request): boolean {
  return headers.some(([name]) => /^authorization$/i.test(name))
}

function answer(client: Socket, status: string, headers: HttpHead['headers'] = [], body = ''): void {
  const length = String(Buffer.byteLength(body))
  client.end(
    httpHead(`HTTP/1.1 ${status}`, [...headers, ['Content-Length', length], ['Connection', 'close']]) + body,
  )
}
