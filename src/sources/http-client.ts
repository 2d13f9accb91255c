import type { Socket } from 'node:net'
import { plainHost, type AddressPolicy, type Nearness } from '../lifecycle/address-policy.js'
import { connectionFailure, connectToCamera, unreachable } from './camera-connection.js'
import { CameraLogin, type LoginMemory } from './camera-login.js'
import { failureByStatus, networkFailures, type Failure } from './failure-reason.js'
import { HttpBody } from './http-body.js'
import { headerIn, httpHead, readHttpHead, type HttpHead } from './http-head.js'
import { askLoggedIn } from './login-rounds.js'
import { redactText } from '../config/redact.js'

const mostRedirects = 5
/** What is read of an answer that nobody wants, to keep its connection. */
const mostUnwantedBytes = 64 * 1024

export type HttpClientOptions = Readonly<{
  /** The camera's, with its login. */
  url: string
  policy: AddressPolicy
  /** Nearness of the camera itself: what it redirects to must not be nearer. */
  nearness: Nearness
  /** What earlier logins have taught about the camera. */
  logins?: LoginMemory
  signal: AbortSignal
}>

/** A good answer. Whoever does not read its body to the end calls `leave`. */
export type CameraAnswer = Readonly<{ head: HttpHead; body: HttpBody; leave(): void }>

/**
 * Asks a camera for what its URL names, again and again if need be, over one connection as long as the camera keeps it. Redirects are
 * followed to allowed addresses alone. It logs in as the camera demands; the login goes nowhere but to the camera's own host.
 */
export class HttpClient {
  readonly #camera: URL
  readonly #login: CameraLogin | undefined
  #kept: Readonly<{ socket: Socket; origin: string }> | undefined
  #open: Socket | undefined

  constructor(readonly options: HttpClientOptions) {
    this.#camera = new URL(options.url)
    this.#login = CameraLogin.of(this.#camera, options.logins)
    options.signal.addEventListener('abort', () => this.close(), { once: true })
  }

  /** One answer at a time: that before is left. @returns a failure for every answer that is not good. */
  async get(): Promise<CameraAnswer | Failure> {
    let url = this.#camera
    for (let redirects = 0; redirects <= mostRedirects; redirects += 1) {
      const answer = await this.#ask(url)
      if ('reason' in answer) return answer
      const status = Number(/^\S+ (\d{3})/.exec(answer.head.first)?.[1] ?? 200)
      const place = status >= 300 && status < 400 ? headerIn(answer.head, 'location') : undefined
      if (place === undefined) {
        if (status >= 200 && status < 300) return answer
        await this.#pass(answer)
        return failureByStatus(status, headerIn(answer.head, 'retry-after'))
      }
      await this.#pass(answer)
      const next = URL.canParse(place, url.href) ? new URL(place, url) : undefined
      if (next?.protocol !== 'http:' && next?.protocol !== 'https:')
        return {
          reason: `the camera redirects to ${redactText(place)}, which is no web address`,
          retry: 'slow',
        }
      url = next
    }
    return { reason: `the camera redirects more than ${mostRedirects} times`, retry: 'slow' }
  }

  /** Ends all connections. Idempotent. */
  close(): void {
    this.#open?.destroy()
    this.#kept?.socket.destroy()
    this.#kept = undefined
  }

  async #ask(url: URL): Promise<CameraAnswer | Failure> {
    const { answer, refused } = await askLoggedIn<CameraAnswer | Failure>(this.#loginFor(url), {
      method: 'GET',
      path: pathOf(url),
      ask: (authorization) => this.#exchange(url, authorization),
      headOf: (answer) => ('reason' in answer ? undefined : answer.head),
      pass: (answer) => this.#pass(answer),
    })
    if (refused === undefined) return answer
    await this.#pass(answer)
    return refused
  }

  /** A connection that was kept may have been closed meanwhile, which shows in the next request alone. */
  async #exchange(url: URL, authorization: string | undefined): Promise<CameraAnswer | Failure> {
    const kept = this.#kept?.origin === url.origin ? this.#kept.socket : undefined
    if (kept === undefined) this.#kept?.socket.destroy()
    this.#kept = undefined
    if (kept !== undefined && !kept.destroyed) {
      const answer = await this.#over(kept, url, authorization)
      if (answer !== undefined) return answer
    }
    const socket = await this.#connect(url)
    if ('reason' in socket) return socket
    const answer = await this.#over(socket, url, authorization)
    return answer ?? { reason: networkFailures.reset, retry: 'normal' }
  }

  async #over(
    socket: Socket,
    url: URL,
    authorization: string | undefined,
  ): Promise<CameraAnswer | undefined> {
    this.#open = socket
    socket.write(
      httpHead(`GET ${pathOf(url)} HTTP/1.1`, [
        ['Host', url.host],
        ['User-Agent', 'Gantry'],
        ['Accept', '*/*'],
        ...(authorization === undefined ? [] : [['Authorization', authorization] as const]),
        ['Connection', 'keep-alive'],
      ]),
      'latin1',
    )
    let head = await readHttpHead(socket)
    while (head !== undefined && /^\S+ 1\d\d\b/.test(head.first)) {
      socket.unshift(head.rest)
      head = await readHttpHead(socket)
    }
    if (head === undefined) {
      socket.destroy()
      return undefined
    }
    const body = new HttpBody(socket, head)
    const keeps = keepsConnection(head)
    return { head, body, leave: () => this.#leave(socket, url, body, keeps) }
  }

  #leave(socket: Socket, url: URL, body: HttpBody, keeps: boolean): void {
    if (this.#open === socket) this.#open = undefined
    if (keeps && body.state === 'whole' && !this.options.signal.aborted && !socket.destroyed)
      this.#kept = { socket, origin: url.origin }
    else socket.destroy()
  }

  async #pass(answer: CameraAnswer | Failure): Promise<void> {
    if ('reason' in answer) return
    const { body, leave } = answer
    let bytes = 0
    try {
      if ((body.lengthBytes ?? 0) <= mostUnwantedBytes)
        for await (const chunk of body.bytes()) if ((bytes += chunk.length) > mostUnwantedBytes) break
    } catch {
      // It is not wanted.
    }
    leave()
  }

  async #connect(url: URL): Promise<Socket | Failure> {
    const { policy, nearness, signal } = this.options
    try {
      const found = await policy.resolve(url.hostname, nearness)
      if (found.kind !== 'open') return unreachable(found)
      const secure = url.protocol === 'https:'
      const port = Number(url.port) || (secure ? 443 : 80)
      return await connectToCamera({ host: plainHost(url.hostname), port, secure }, found.addresses, signal)
    } catch (error) {
      return connectionFailure(error)
    }
  }

  /** A camera that leads from HTTP to HTTPS is the same one. */
  #loginFor({ origin, hostname, protocol }: URL): CameraLogin | undefined {
    const isCamera =
      origin === this.#camera.origin || (hostname === this.#camera.hostname && protocol === 'https:')
    return isCamera ? this.#login : undefined
  }
}

function pathOf({ pathname, search }: URL): string {
  return pathname + search
}

function keepsConnection(head: HttpHead): boolean {
  const said = headerIn(head, 'connection') ?? ''
  return /^HTTP\/1\.0/i.test(head.first) ? /keep-alive/i.test(said) : !/close/i.test(said)
}
