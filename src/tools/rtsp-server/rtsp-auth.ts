import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { RtspRequest } from './rtsp-message.js'

/** Who may watch a stream, and how the client must prove it. */
export type RtspCredentials = Readonly<{ scheme: 'basic' | 'digest'; user: string; password: string }>

const realm = 'gantry'

/** Checks one client's login (RFC 7617, RFC 2069 as RTSP cameras use it). */
export class RtspAuth {
  readonly #nonce = randomBytes(16).toString('hex')

  constructor(readonly credentials: RtspCredentials) {}

  /** Value of the `WWW-Authenticate` header. */
  get challenge(): string {
    return this.credentials.scheme === 'basic'
      ? `Basic realm="${realm}"`
      : `Digest realm="${realm}", nonce="${this.#nonce}"`
  }

  accepts(request: RtspRequest): boolean {
    const given = request.headers.get('authorization') ?? ''
    const { scheme, user, password } = this.credentials
    if (scheme === 'basic')
      return equal(given, `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`)
    const fields = new Map([...given.matchAll(/(\w+)="([^"]*)"/g)].map((match) => [match[1], match[2] ?? '']))
    const secret = md5(`${user}:${realm}:${password}`)
    const action = md5(`${request.method}:${fields.get('uri') ?? ''}`)
    return equal(fields.get('response') ?? '', md5(`${secret}:${this.#nonce}:${action}`))
  }
}

function md5(text: string): string {
  return createHash('md5').update(text).digest('hex')
}

function equal(a: string, b: string): boolean {
  const left = Buffer.from(a)
  const right = Buffer.from(b)
  return left.length === right.length && timingSafeEqual(left, right)
}
