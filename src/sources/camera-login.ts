import { createHash, randomBytes } from 'node:crypto'
import type { Failure } from './failure-reason.js'
import { challengesIn, quotable, type Challenge } from './login-challenge.js'

/** Digests by the name of their algorithm, weakest first; each also as a session (`-sess`). */
const hashes: ReadonlyMap<string, string> = new Map([
  ['MD5', 'md5'],
  ['SHA-256', 'sha256'],
  ['SHA-512-256', 'sha512-256'],
])

/** Answers in a row that a server may call stale. */
const mostRenewals = 3

/** What a login has taught about its camera; the next one with the same name and password begins with it. */
export type LoginMemory = {
  /** Spelling of what is beyond ASCII that is to be tried first: the one that the camera took. */
  charset?: Charset
  /** Both were refused: each login tries one of them, in turn, so that an account is not locked the sooner. */
  inTurn?: boolean
}

type Charset = 'utf8' | 'latin1'

/**
 * Logs in to a camera with its name and password, as it demands, over RTSP and HTTP alike (RFC 7617; RFC 7616, RFC 2617 and RFC 2069). It
 * says nothing before it is asked.
 *
 * Headers go in and come out with one character for each byte: they are written as latin1.
 */
export class CameraLogin {
  #challenge: Challenge | undefined
  #uses = 0
  /** One for each challenge: by some the key of a session is reckoned from the first, by others from the latest. */
  #cnonce = ''
  #wasTaken = false
  #renewals = 0
  #charset: Charset
  #otherCharset: Charset | undefined

  constructor(
    readonly user: string,
    readonly password: string,
    readonly memory: LoginMemory = {},
    charset?: Charset,
  ) {
    this.#charset = charset ?? memory.charset ?? 'utf8'
    const hasOther = charset === undefined && /[\x80-\xff]/.test(user + password)
    const fitsLatin1 = !/[^\0-\xff]/.test(user + password)
    if (hasOther && fitsLatin1) this.#otherCharset = this.#charset === 'utf8' ? 'latin1' : 'utf8'
  }

  /** The login that a URL holds; undefined where it holds none. Escapes that are no UTF-8 are bytes of latin1. */
  static of({ username, password }: URL, memory?: LoginMemory): CameraLogin | undefined {
    if (username + password === '') return undefined
    const bytes = [unescaped(username), unescaped(password)] as const
    const charset = bytes.every(isUtf8) ? undefined : 'latin1'
    const [user, secret] = bytes.map((part) => part.toString(charset ?? 'utf8'))
    return new CameraLogin(user ?? '', secret ?? '', memory, charset)
  }

  /**
   * Takes the values of `WWW-Authenticate` headers: the strongest way that can be gone counts.
   *
   * @param tried - the refused request had an answer of this login already. Another try is worth it only where that had become stale, where
   *   the camera has taken the password before and wants a new answer for every request, or where a password beyond ASCII may be spelt
   *   otherwise: cameras lock accounts.
   * @returns whether the request should be sent again. {@link loginFailure} tells why not.
   */
  challenged(values: readonly string[], tried: boolean): boolean {
    const chosen = strongest(values.flatMap(challengesIn), this.user)
    if (chosen === undefined || (tried && !this.#isWorthAnother(chosen))) return false
    this.#challenge = chosen
    this.#uses = 0
    this.#cnonce = randomBytes(8).toString('hex')
    return true
  }

  /** A request with an answer of this login was not refused. @param values - of `Authentication-Info` headers, which may name the next nonce. */
  informed(values: readonly string[] = []): void {
    if (this.#challenge === undefined) return
    this.#wasTaken = true
    this.#renewals = 0
    this.memory.charset = this.#charset
    this.memory.inTurn = false
    this.#otherCharset = undefined
    const next = values.map((value) => fieldOf(challengesIn(`info ${value}`)[0], 'nextnonce')).find(Boolean)
    if (next === undefined) return
    const fields = new Map(this.#challenge.fields).set('nonce', { value: next, written: quotable(next) })
    this.#challenge = { ...this.#challenge, fields }
    this.#uses = 0
  }

  /**
   * Value of the `Authorization` header of a request; undefined before the first challenge.
   *
   * @param uri - as it is sent.
   * @param body - of the request, which some want to be vouched for (`auth-int`).
   */
  answer(method: string, uri: string, body: Uint8Array = new Uint8Array()): string | undefined {
    if (this.#challenge === undefined) return undefined
    if (this.#challenge.scheme === 'basic')
      return `Basic ${Buffer.from(`${this.user}:${this.password}`, this.#charset).toString('base64')}`
    this.#uses += 1
    return this.#digest(this.#challenge, method, uri, body)
  }

  #isWorthAnother(challenge: Challenge): boolean {
    const isStale = fieldOf(challenge, 'stale')?.toLowerCase() === 'true'
    const renewable = isStale ? mostRenewals : this.#wasTaken ? 1 : 0
    if (this.#renewals < renewable) {
      this.#renewals += 1
      return true
    }
    const isSpelt = fieldOf(challenge, 'charset')?.toLowerCase() === 'utf-8' && this.#charset === 'utf8'
    const other = this.#otherCharset
    if (other === undefined || isSpelt || isStale) return false
    this.#otherCharset = undefined
    if (this.memory.inTurn === true) {
      this.memory.charset = other
      return false
    }
    this.memory.inTurn = true
    this.#charset = other
    return true
  }

  #digest(challenge: Challenge, method: string, uri: string, body: Uint8Array): string {
    const { hash = 'md5', isSession } = algorithmOf(challenge)
    const digest = (data: string | Uint8Array) =>
      createHash(hash)
        .update(typeof data === 'string' ? Buffer.from(data, 'latin1') : data)
        .digest('hex')
    const [user, password] = [this.user, this.password].map((part) =>
      Buffer.from(part, this.#charset).toString('latin1'),
    )
    const [realm, nonce] = [fieldOf(challenge, 'realm') ?? '', fieldOf(challenge, 'nonce') ?? '']
    const count = this.#uses.toString(16).padStart(8, '0')
    const qop = qopOf(challenge)
    const plain = digest(`${user}:${realm}:${password}`)
    const secret = isSession ? digest(`${plain}:${nonce}:${this.#cnonce}`) : plain
    const middle = qop === undefined ? nonce : `${nonce}:${count}:${this.#cnonce}:${qop}`
    const action = qop === 'auth-int' ? `${method}:${uri}:${digest(body)}` : `${method}:${uri}`
    const isHidden = fieldOf(challenge, 'userhash')?.toLowerCase() === 'true'
    const { algorithm, opaque } = Object.fromEntries(challenge.fields)
    return [
      `Digest username="${isHidden ? digest(`${user}:${realm}`) : quotable(user ?? '')}"`,
      ...['realm', 'nonce'].map((name) => `${name}="${challenge.fields.get(name)?.written ?? ''}"`),
      `uri="${uri}"`,
      `response="${digest(`${secret}:${middle}:${digest(action)}`)}"`,
      ...(algorithm === undefined ? [] : [`algorithm=${algorithm.value}`]),
      ...(opaque === undefined ? [] : [`opaque="${opaque.written}"`]),
      ...(qop === undefined ? [] : [`qop=${qop}`, `nc=${count}`]),
      ...(qop !== undefined || isSession ? [`cnonce="${this.#cnonce}"`] : []),
      ...(isHidden ? ['userhash=true'] : []),
    ].join(', ')
  }
}

/** Why a camera's demand for a login (401) is where it ends. @param values - of its `WWW-Authenticate` headers. */
export function loginFailure(login: CameraLogin | undefined, values: readonly string[]): Failure {
  const offered = values.flatMap(challengesIn)
  const usable = strongest(offered, login?.user ?? '')
  if (usable !== undefined)
    return login === undefined
      ? { reason: 'the camera wants a login (401): set username and password', retry: 'slow' }
      : { reason: 'credentials refused (401)', retry: 'login' }
  if (offered.length === 0) {
    const reason =
      'the camera refuses (401) and names no way to log in: its account may be locked for a while'
    return { reason, retry: login === undefined ? 'slow' : 'login' }
  }
  if (offered.some(({ scheme }) => scheme === 'basic'))
    return { reason: 'the camera wants Basic (401), which has no ":" in a user name', retry: 'slow' }
  const names = [...new Set(offered.map(nameOf))].join(' or ')
  const reason = `the camera wants ${names}, which Gantry does not speak (401): switch Digest or Basic on in its settings`
  return { reason, retry: 'slow' }
}

/** The words of a challenge for people. They are the camera's: no more than plain characters of them. */
function nameOf(challenge: Challenge): string {
  const plain = (text: string) => text.replace(/[^\w-]/g, '').slice(0, 32)
  const known: Readonly<Record<string, string>> = { ntlm: 'NTLM', negotiate: 'Negotiate', bearer: 'Bearer' }
  if (challenge.scheme !== 'digest') return known[challenge.scheme] ?? plain(challenge.scheme)
  const { hash, name } = algorithmOf(challenge)
  if (hash === undefined) return `Digest with ${plain(name)}`
  return `Digest with qop ${plain(fieldOf(challenge, 'qop') ?? '')}`
}

function fieldOf(challenge: Challenge | undefined, name: string): string | undefined {
  return challenge?.fields.get(name)?.value
}

function algorithmOf(challenge: Challenge) {
  const name = fieldOf(challenge, 'algorithm') ?? 'MD5'
  const [, base = '', session] = /^(.*?)(-sess)?$/is.exec(name) ?? []
  return {
    name,
    base: base.toUpperCase(),
    hash: hashes.get(base.toUpperCase()),
    isSession: session !== undefined,
  }
}

/** `auth` where it is offered; undefined where nothing is, as in RFC 2069. */
function qopOf(challenge: Challenge): 'auth' | 'auth-int' | undefined {
  const offered = qopsOf(challenge)
  if (offered.includes('auth')) return 'auth'
  return offered.includes('auth-int') ? 'auth-int' : undefined
}

function qopsOf(challenge: Challenge): string[] {
  const words = (fieldOf(challenge, 'qop') ?? '').toLowerCase().split(/[\s,]+/)
  return words.filter((word) => word !== '')
}

function strongest(challenges: readonly Challenge[], user: string): Challenge | undefined {
  const ranked = challenges.map((challenge) => ({ challenge, rank: strengthOf(challenge, user) }))
  return ranked.toSorted((a, b) => b.rank - a.rank).find(({ rank }) => rank >= 0)?.challenge
}

/** 0 for Basic, more for the stronger digests, less for what cannot be answered. */
function strengthOf(challenge: Challenge, user: string): number {
  if (challenge.scheme === 'basic') return user.includes(':') ? -1 : 0
  if (challenge.scheme !== 'digest') return -1
  if (qopsOf(challenge).length > 0 && qopOf(challenge) === undefined) return -1
  const rank = [...hashes.keys()].indexOf(algorithmOf(challenge).base)
  return rank < 0 ? -1 : rank + 1
}

/** The bytes that a part of a URL stands for; a "%" that begins no escape is itself. */
function unescaped(part: string): Buffer {
  const bytes = Buffer.from(part).toString('latin1')
  const plain = bytes.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  return Buffer.from(plain, 'latin1')
}

function isUtf8(bytes: Buffer): boolean {
  return Buffer.from(bytes.toString('utf8')).equals(bytes)
}
