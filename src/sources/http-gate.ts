import { once } from 'node:events'
import {
  connect,
  createServer,
  type AddressInfo,
  type LookupFunction,
  type Server,
  type Socket,
} from 'node:net'
import { pipeline } from 'node:stream'
import { plainHost, type AddressPolicy, type CheckedAddress, type Nearness } from './address-policy.js'
import { systemLimit } from '../lifecycle/system-limit.js'
import { failureBy, type Failure } from './failure-reason.js'
import { networkFailures } from './network-failure.js'

const largestHeadBytes = 32 * 1024
/** Shorter than the time ffmpeg waits for an answer, so that the reason is ours to tell. */
const connectMs = 8_000

/** Where a request of the decoder goes, and what of it is sent there. */
type Request = Readonly<{ host: string; port: number; head: string; tunnel: boolean }>

/**
 * The only way out for the decoder of an HTTP camera: a proxy on loopback that opens connections to allowed addresses alone.
 *
 * ffmpeg follows redirects, and play lists name further URLs, without asking anyone; here each of them is looked up once, checked, and
 * connected to at the very address that was checked. What a stream refers to must not be nearer to this machine than the stream.
 * Bytes pass as they are: TLS stays between the decoder and the camera.
 */
export class HttpGate {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #problem: Failure | undefined

  private constructor(
    readonly policy: AddressPolicy,
    readonly from: Nearness,
  ) {
    this.#server = createServer((client) => {
      this.#keep(client)
      this.#serve(client).catch((error: unknown) => {
        this.#problem = failureOf(error)
        client.destroy()
      })
    })
    // A connection that cannot be taken.
    this.#server.on('error', (error) => (this.#problem = failureOf(error)))
  }

  /** @param from - nearness of the camera itself. */
  static async open(policy: AddressPolicy, from: Nearness): Promise<HttpGate> {
    const gate = new HttpGate(policy, from)
    gate.#server.listen(0, '127.0.0.1')
    await once(gate.#server, 'listening')
    return gate
  }

  get proxyUrl(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Why the latest connection was not opened; undefined when it was. */
  get problem(): Failure | undefined {
    return this.#problem
  }

  close(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    // Either side may go at any time; the other is told by the pipeline.
    socket.on('error', () => undefined)
  }

  async #serve(client: Socket): Promise<void> {
    const head = await readHead(client)
    const request = head === undefined ? undefined : parseHead(head.text)
    if (head === undefined || request === undefined) return answer(client, '400 Bad Request')
    const addresses = await this.#addressesOf(request.host)
    if (addresses === undefined) return answer(client, '403 Forbidden')
    const upstream = await this.#connect(request, addresses)
    if (upstream === undefined) return answer(client, '502 Bad Gateway')
    this.#problem = undefined
    if (request.tunnel) client.write('HTTP/1.1 200 Connection established\r\n\r\n')
    else upstream.write(request.head)
    upstream.write(head.rest)
    pipeline(client, upstream, () => undefined)
    pipeline(upstream, client, () => undefined)
  }

  async #addressesOf(host: string): Promise<readonly CheckedAddress[] | undefined> {
    const found = await this.policy.resolve(host, this.from)
    if (found.kind === 'open') return found.addresses
    this.#problem = unreachable(found)
    return undefined
  }

  async #connect({ host, port }: Request, addresses: readonly CheckedAddress[]): Promise<Socket | undefined> {
    const upstream = connect({ host, port, noDelay: true, autoSelectFamily: true, lookup: fixed(addresses) })
    this.#keep(upstream)
    try {
      await once(upstream, 'connect', { signal: AbortSignal.timeout(connectMs) })
      return upstream
    } catch (error) {
      upstream.destroy()
      this.#problem = failureOf(error)
      return undefined
    }
  }
}

/** Why a host is not connected to at all. */
export function unreachable(
  resolution: Readonly<{ kind: 'refused'; reason: string }> | { kind: 'unknown' },
): Failure {
  if (resolution.kind === 'unknown') return { reason: networkFailures.unknownHost, retry: 'normal' }
  return { reason: `address not allowed: ${resolution.reason} (see cameraNetworks)`, retry: 'slow' }
}

function failureOf(error: unknown): Failure {
  const limit = systemLimit(error)
  if (limit !== undefined) return failureBy(limit)
  switch ((error as NodeJS.ErrnoException).code) {
    case 'ECONNREFUSED':
      return { reason: networkFailures.refused, retry: 'normal' }
    case 'ECONNRESET':
      return { reason: networkFailures.reset, retry: 'normal' }
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return { reason: networkFailures.unreachable, retry: 'normal' }
    default:
      return { reason: networkFailures.timedOut, retry: 'normal' }
  }
}

/** A lookup that knows its answer already. */
function fixed(addresses: readonly CheckedAddress[]): LookupFunction {
  return (_host, options, done) => {
    const [first] = addresses
    if (options.all === true) done(null, [...addresses])
    else if (first) done(null, first.address, first.family)
  }
}

async function readHead(client: Socket): Promise<Readonly<{ text: string; rest: Buffer }> | undefined> {
  let bytes = Buffer.alloc(0)
  for (;;) {
    const chunk = await nextChunk(client)
    if (chunk === undefined) return undefined
    bytes = Buffer.concat([bytes, chunk])
    const end = bytes.indexOf('\r\n\r\n')
    if (end >= 0) return { text: bytes.toString('latin1', 0, end), rest: bytes.subarray(end + 4) }
    if (bytes.length > largestHeadBytes) return undefined
  }
}

/** What has come, leaving the socket paused; undefined at its end. */
async function nextChunk(socket: Socket): Promise<Buffer | undefined> {
  for (;;) {
    const chunk = socket.read() as Buffer | null
    if (chunk !== null) return chunk
    if (socket.destroyed || socket.readableEnded) return undefined
    await new Promise<void>((resolve) => {
      const go = () => {
        for (const event of ['readable', 'end', 'close']) socket.off(event, go)
        resolve()
      }
      for (const event of ['readable', 'end', 'close']) socket.once(event, go)
    })
  }
}

/** @returns undefined for what is no request to a proxy, so that pages of a browser cannot use it. */
function parseHead(text: string): Request | undefined {
  const [line = '', ...headers] = text.split('\r\n')
  const [, method = '', target = ''] = /^([A-Z]+) (\S+) HTTP\/1\.[01]$/.exec(line) ?? []
  const tunnel = method === 'CONNECT'
  const address = tunnel ? `https://${target}` : target
  if (!URL.canParse(address)) return undefined
  const url = new URL(address)
  if (!tunnel && url.protocol !== 'http:') return undefined
  const kept = headers.filter((header) => !/^(proxy-[a-z-]+|connection):/i.test(header))
  // The path as the decoder wrote it: a signature in a digest login covers these very bytes.
  const path = target.replace(/^http:\/\/[^/?]*/i, '').replace(/^(?!\/)/, '/')
  return {
    host: plainHost(url.hostname),
    port: Number(url.port) || (tunnel ? 443 : 80),
    head: [`${method} ${path} HTTP/1.1`, ...kept, 'Connection: close', '', ''].join('\r\n'),
    tunnel,
  }
}

function answer(client: Socket, status: string): void {
  client.end(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`)
}
