import { createHash, randomBytes } from 'node:crypto'
import type { RtspRequest } from './rtsp-message.js'

export type RtspCredentials = Readonly<{ user: string; password: string; scheme: 'basic' | 'digest' }>

const realm = 'gantry'
const md5 = (text: string) => createHash('md5').update(text).digest('hex')

/** Basic or Digest authentication as cameras ask for it (RFC 2617). */
export class RtspAuth {
  readonly #nonce = randomBytes(16).toString('hex')

  constructor(readonly credentials: RtspCredentials) {}

  get challenge(): string {
    return this.credentials.scheme === 'basic'
      ? `Basic realm="${realm}"`
      : `Digest realm="${realm}", nonce="${this.#nonce}", algorithm=MD5`
  }

  admits({ method, headers }: RtspRequest): boolean {
    const { user, password, scheme } = this.credentials
    const given = headers.get('authorization') ?? ''
    if (scheme === 'basic') return given === `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
    const field = (name: string) => new RegExp(`${name}="([^"]*)"`).exec(given)?.[1] ?? ''
    const ha1 = md5(`${user}:${realm}:${password}`)
    const ha2 = md5(`${method}:${field('uri')}`)
    return given.startsWith('Digest ') && field('response') === md5(`${ha1}:${this.#nonce}:${ha2}`)
  }
}
