import { createHash, randomBytes } from 'node:crypto'

/** What a camera asks for before it answers: its own words to a client without, or with a wrong, login. */
type Challenge = Readonly<{ scheme: 'basic' | 'digest'; fields: ReadonlyMap<string, string> }>

const hashes: Readonly<Record<string, string>> = { MD5: 'md5', 'SHA-256': 'sha256' }

/**
 * Logs in to a camera with the name and password of its URL, as it demands (RFC 7617, RFC 7616 and the older RFC 2069). It says nothing
 * before it is asked.
 */
export class CameraLogin {
  #challenge: Challenge | undefined
  #uses = 0

  constructor(
    readonly user: string,
    readonly password: string,
  ) {}

  /** The login that a URL holds; undefined where it holds none. */
  static of({ username, password }: URL): CameraLogin | undefined {
    if (username + password === '') return undefined
    return new CameraLogin(decodeURIComponent(username), decodeURIComponent(password))
  }

  /**
   * Takes the values of `WWW-Authenticate` headers.
   *
   * @param tried - the refused request had a login already; only a stale one is worth another try.
   * @returns whether the request should be sent again.
   */
  challenged(values: readonly string[], tried: boolean): boolean {
    const found = values.flatMap(challengesIn)
    const chosen = found.find(answerable) ?? found.find(({ scheme }) => scheme === 'basic')
    if (chosen === undefined) return false
    const stale = chosen.fields.get('stale')?.toLowerCase() === 'true'
    if (tried && !stale) return false
    this.#challenge = chosen
    this.#uses = 0
    return true
  }

  /** Value of the `Authorization` header of a request; undefined before the first challenge. @param uri - as it is sent. */
  answer(method: string, uri: string): string | undefined {
    if (this.#challenge === undefined) return undefined
    if (this.#challenge.scheme === 'basic')
      return `Basic ${Buffer.from(`${this.user}:${this.password}`).toString('base64')}`
    this.#uses += 1
    return this.#digest(this.#challenge.fields, method, uri)
  }

  #digest(fields: ReadonlyMap<string, string>, method: string, uri: string): string {
    const { name, hash, session } = algorithmOf(fields)
    const [realm, nonce] = [fields.get('realm') ?? '', fields.get('nonce') ?? '']
    const cnonce = randomBytes(8).toString('hex')
    const count = this.#uses.toString(16).padStart(8, '0')
    const withQop = offersAuth(fields)
    const digest = (text: string) =>
      createHash(hash ?? 'md5')
        .update(text)
        .digest('hex')
    const plain = digest(`${this.user}:${realm}:${this.password}`)
    const secret = session ? digest(`${plain}:${nonce}:${cnonce}`) : plain
    const middle = withQop ? `${nonce}:${count}:${cnonce}:auth` : nonce
    const opaque = fields.get('opaque')
    return [
      `Digest username="${quoted(this.user)}"`,
      ...[`realm="${quoted(realm)}"`, `nonce="${quoted(nonce)}"`, `uri="${uri}"`],
      `response="${digest(`${secret}:${middle}:${digest(`${method}:${uri}`)}`)}"`,
      ...(name === undefined ? [] : [`algorithm=${name}`]),
      ...(opaque === undefined ? [] : [`opaque="${quoted(opaque)}"`]),
      ...(withQop ? [`qop=auth`, `nc=${count}`] : []),
      ...(withQop || session ? [`cnonce="${cnonce}"`] : []),
    ].join(', ')
  }
}

function algorithmOf(fields: ReadonlyMap<string, string>) {
  const name = fields.get('algorithm')
  const [, base = '', session] = /^(.*?)(-sess)?$/i.exec(name ?? 'MD5') ?? []
  return { name, hash: hashes[base.toUpperCase()], session: session !== undefined }
}

function offersAuth(fields: ReadonlyMap<string, string>): boolean {
  return /(^|[\s,])auth([\s,]|$)/i.test(fields.get('qop') ?? '')
}

function answerable({ scheme, fields }: Challenge): boolean {
  const { hash } = algorithmOf(fields)
  return scheme === 'digest' && hash !== undefined && (!fields.has('qop') || offersAuth(fields))
}

/** One header may hold several, in any order. */
function challengesIn(value: string): Challenge[] {
  return value.split(/(?<=^|,\s*)(?=(?:Basic|Digest)\s)/i).flatMap((part): Challenge[] => {
    const [, scheme = ''] = /^(Basic|Digest)\s/i.exec(part) ?? []
    if (scheme === '') return []
    const fields = [...part.matchAll(/([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/g)].map(
      ([, key = '', text, word]): [string, string] => [
        key.toLowerCase(),
        text?.replace(/\\(.)/g, '$1') ?? word ?? '',
      ],
    )
    return [{ scheme: scheme.toLowerCase() as Challenge['scheme'], fields: new Map(fields) }]
  })
}

function quoted(text: string): string {
  return text.replace(/["\\]/g, '\\$&')
}
