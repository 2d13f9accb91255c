import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'

export type DigestHabits = Readonly<{
  algorithm?: 'MD5' | 'MD5-sess' | 'SHA-256'
  /** Absent: as before RFC 2617. */
  qop?: string
  /** Requests that a nonce is good for; for ever where it is absent. */
  nonceUses?: number
  /** Whether it says of an old nonce that it is one. */
  tellsStale?: boolean
  /** Names the next nonce in each good answer. */
  namesNext?: boolean
}>

/** Holds HTTP requests to a digest login (RFC 7616), as strictly as a camera may: each count of a nonce is taken once. */
export class DigestGuard {
  /** Requests that were refused. */
  refused = 0
  #nonce = 1
  #uses = 0

  constructor(
    readonly user: string,
    readonly password: string,
    readonly habits: DigestHabits = {},
  ) {}

  /** @returns whether the request may be answered; else it was. */
  admits(request: IncomingMessage, response: ServerResponse): boolean {
    const fields = fieldsOf(request.headers.authorization ?? '')
    const isRight = fields.get('response') === this.#expected(fields, request)
    const isFresh = fields.get('nonce') === `n${this.#nonce}` && this.#countIsNext(fields)
    if (isRight && isFresh) {
      this.#uses += 1
      if (this.#uses >= (this.habits.nonceUses ?? Number.POSITIVE_INFINITY)) this.#renew()
      if (this.habits.namesNext === true)
        response.setHeader('Authentication-Info', `qop=auth, nextnonce="n${this.#nonce}"`)
      return true
    }
    this.refused += 1
    this.#renew()
    const { algorithm, qop, tellsStale = true } = this.habits
    const words = [`realm="cam, 1"`, `nonce="n${this.#nonce}"`, 'opaque="o"']
    if (algorithm !== undefined) words.push(`algorithm=${algorithm}`)
    if (qop !== undefined) words.push(`qop="${qop}"`)
    if (isRight && tellsStale) words.push('stale=true')
    response.writeHead(401, { 'WWW-Authenticate': `Digest ${words.join(', ')}` }).end('<html>login</html>')
    return false
  }

  #renew(): void {
    this.#nonce += 1
    this.#uses = 0
  }

  #countIsNext(fields: ReadonlyMap<string, string>): boolean {
    return this.habits.qop === undefined || Number.parseInt(fields.get('nc') ?? '', 16) === this.#uses + 1
  }

  #expected(fields: ReadonlyMap<string, string>, { method, url }: IncomingMessage): string | undefined {
    if (fields.get('uri') !== url || fields.get('username') !== this.user) return undefined
    const name = this.habits.algorithm ?? 'MD5'
    const digest = (text: string) =>
      createHash(name === 'SHA-256' ? 'sha256' : 'md5')
        .update(text)
        .digest('hex')
    const [nonce, cnonce, count] = ['nonce', 'cnonce', 'nc'].map((key) => fields.get(key) ?? '')
    const plain = digest(`${this.user}:cam, 1:${this.password}`)
    const secret = name === 'MD5-sess' ? digest(`${plain}:${nonce}:${cnonce}`) : plain
    const middle = this.habits.qop === undefined ? nonce : `${nonce}:${count}:${cnonce}:auth`
    return digest(`${secret}:${middle}:${digest(`${method}:${url}`)}`)
  }
}

function fieldsOf(header: string): ReadonlyMap<string, string> {
  return new Map(
    [...header.matchAll(/(\w+)=(?:"([^"]*)"|([^\s,]+))/g)].map(([, key = '', text, word]) => [
      key,
      text ?? word ?? '',
    ]),
  )
}
