import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { authorizationFields, digestResponse, hiddenUser, type KnownLogin } from './digest-proof.js'

/** A way to log in that the camera offers. `realm` and `extra` are as they stand in the header, one character a byte. */
export type OfferedLogin = Readonly<{
  scheme: string
  algorithm?: string
  qop?: string
  realm?: string
  /** Further parameters, with their commas: `, opaque="x"`. */
  extra?: string
  /** In place of all of that; `<nonce>` is filled in. */
  written?: string
}>

export type LoginFrontOptions = Readonly<{
  known: KnownLogin
  offers: readonly OfferedLogin[]
  /** The other ways would be answered by the client, but are no longer taken. */
  takes?: string
  /** Requests that need a login; default: all of them. */
  methods?: readonly string[]
  /**
   * How long a nonce holds: `connection`; `request`, and it is not said that it was stale; `stale`, which is said; `next`: each answer names
   * the next one; `never`, every answer is stale.
   */
  nonces?: 'connection' | 'request' | 'stale' | 'next' | 'never'
  /** All offers in one header, as the standard allows. */
  oneHeader?: boolean
  /** Answers to a login that is right: for what else a camera says. */
  answers?(method: string): string | undefined
}>

type Message = Readonly<{ method: string; head: string; body: Buffer; bytes: Buffer }>

/** A camera's login as real ones have it, before an RTSP server that asks for none. */
export class RtspLoginFront {
  /** `Authorization` headers that came. */
  readonly given: string[] = []
  /** Those that proved nothing. */
  wrong = 0
  unasked = 0
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor(
    readonly behindPort: number,
    readonly options: LoginFrontOptions,
  ) {
    this.#server = createServer((client) => this.#serve(client))
  }

  static async start(behindPort: number, options: LoginFrontOptions): Promise<RtspLoginFront> {
    const front = new RtspLoginFront(behindPort, options)
    front.#server.listen(0, '127.0.0.1')
    await once(front.#server, 'listening')
    return front
  }

  url(path: string, login = ''): string {
    const { port } = this.#server.address() as AddressInfo
    return `rtsp://${login === '' ? '' : `${login}@`}127.0.0.1:${port}${path}`
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #serve(client: Socket): void {
    const server = connect(this.behindPort, '127.0.0.1')
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        this.#sockets.delete(socket)
        other.destroy()
      })
    }
    const desk = new Desk(this.options)
    server.on('data', (bytes) => client.write(desk.withNext(bytes)))
    let kept: Buffer = Buffer.alloc(0)
    client.on('data', (bytes) => {
      kept = Buffer.concat([kept, bytes])
      for (;;) {
        const message = firstOf(kept)
        if (message === undefined) return
        kept = kept.subarray(message.bytes.length)
        if (message.method === '') server.write(message.bytes)
        else this.#asked(message, desk, client, server)
      }
    })
  }

  #asked(message: Message, desk: Desk, client: Socket, server: Socket): void {
    const { method, head, bytes } = message
    const given = /^authorization:\s*(.*)$/im.exec(head)?.[1]
    if (given === undefined) this.unasked += 1
    else this.given.push(given)
    const seq = /^cseq:\s*(\d+)/im.exec(head)?.[1] ?? '0'
    const needed = this.options.methods?.includes(method) ?? true
    if (needed && !desk.takes(message, given)) {
      if (given !== undefined && !desk.isOld) this.wrong += 1
      const lines = ['RTSP/1.0 401 Unauthorized', `CSeq: ${seq}`, ...desk.challenges(), '', '']
      return void client.write(lines.join('\r\n'), 'latin1')
    }
    const own = this.options.answers?.(method)
    if (own === undefined) server.write(bytes)
    else client.write(`RTSP/1.0 ${own.replace('CSEQ', seq)}\r\n\r\n`)
  }
}

/** What one connection has been asked, and what it has answered. */
class Desk {
  /** The proof was right, for a nonce that does not hold any more. */
  isOld = false
  #nonces = [randomBytes(8).toString('hex')]
  #counted = 0

  constructor(readonly options: LoginFrontOptions) {}

  challenges(): string[] {
    const stale = this.isOld && /stale|never/.test(this.options.nonces ?? '') ? ', stale=true' : ''
    if (this.options.nonces !== 'connection' && this.options.nonces !== undefined) this.#renew()
    const values = this.options.offers.map((offer) => {
      const { scheme, algorithm, qop, realm = 'a camera', extra = '', written } = offer
      if (written !== undefined) return written.replace('<nonce>', this.#nonce)
      if (/^basic$/i.test(scheme)) return `${scheme} realm="${realm}"`
      if (!/^digest$/i.test(scheme)) return scheme
      const rest = [algorithm && `, algorithm=${algorithm}`, qop && `, qop="${qop}"`].join('')
      return `${scheme} realm="${realm}", nonce="${this.#nonce}"${rest}${extra}${stale}`
    })
    return this.options.oneHeader === true
      ? [`WWW-Authenticate: ${values.join(', ')}`]
      : values.map((value) => `WWW-Authenticate: ${value}`)
  }

  takes({ method, head, body }: Message, given: string | undefined): boolean {
    this.isOld = false
    if (given === undefined) return false
    const { known, takes } = this.options
    if (takes !== undefined && !given.includes(takes)) return false
    if (/^basic /i.test(given)) {
      if (!this.options.offers.some(({ scheme }) => /^basic$/i.test(scheme))) return false
      const expected = Buffer.concat([known.user, Buffer.from(':'), known.password])
      return Buffer.from(given.slice('Basic '.length), 'base64').equals(expected)
    }
    const fields = authorizationFields(given)
    const [name, uri] = [fields.get('username') ?? '', /^\S+ (\S+)/.exec(head)?.[1]]
    const user = known.user.toString('latin1')
    const hidden = hiddenUser(fields.get('algorithm') ?? 'MD5', known.user, fields.get('realm') ?? '')
    const isNamed = fields.get('userhash') === 'true' ? name === hidden : name === user
    if (!isNamed || fields.get('uri') !== uri) return false
    if (fields.get('response') !== digestResponse(fields, known, method, body)) return false
    this.isOld = fields.get('nonce') !== this.#nonce || this.options.nonces === 'never'
    if (this.isOld) return false
    const count = fields.get('nc')
    // A proof that is sent twice is somebody else's.
    if (count !== undefined && Number.parseInt(count, 16) <= this.#counted) return false
    this.#counted = Number.parseInt(count ?? '0', 16)
    if (
      this.options.nonces === 'request' ||
      this.options.nonces === 'stale' ||
      this.options.nonces === 'next'
    )
      this.#renew()
    return true
  }

  /** Names the next nonce in an answer. */
  withNext(bytes: Buffer): Buffer {
    if (this.options.nonces !== 'next' || !bytes.toString('latin1', 0, 9).startsWith('RTSP/1.0 '))
      return bytes
    const [first = '', ...rest] = bytes.toString('latin1').split('\r\n')
    return Buffer.from(
      [first, `Authentication-Info: nextnonce="${this.#nonce}", qop=auth`, ...rest].join('\r\n'),
      'latin1',
    )
  }

  get #nonce(): string {
    return this.#nonces.at(-1) ?? ''
  }

  #renew(): void {
    this.#nonces.push(randomBytes(8).toString('hex'))
    this.#counted = 0
  }
}

/** The first whole message or frame of packets; undefined while more must come. A frame has no method. */
function firstOf(bytes: Buffer): Message | undefined {
  if (bytes.length === 0) return undefined
  if (bytes[0] === 0x24) {
    const length = bytes.length < 4 ? Number.POSITIVE_INFINITY : 4 + bytes.readUInt16BE(2)
    const frame = { method: '', head: '', body: Buffer.alloc(0), bytes: bytes.subarray(0, length) }
    return bytes.length < length ? undefined : frame
  }
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const head = bytes.toString('latin1', 0, end)
  const whole = end + 4 + Number(/^content-length:\s*(\d+)/im.exec(head)?.[1] ?? 0)
  if (bytes.length < whole) return undefined
  const method = /^\S+/.exec(head)?.[0] ?? ''
  return { method, head, body: bytes.subarray(end + 4, whole), bytes: bytes.subarray(0, whole) }
}
