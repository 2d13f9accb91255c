import { createHash } from 'node:crypto'

/** What a server knows of its user, as the bytes that it has them in. */
export type KnownLogin = Readonly<{ user: Buffer; password: Buffer }>

/** `name=value` of an `Authorization` header, quotes taken off; one character a byte. */
export function authorizationFields(header: string): ReadonlyMap<string, string> {
  const fields = new Map<string, string>()
  let rest = header.replace(/^\S+\s+/, '')
  for (;;) {
    const [all = '', name = '', quoted, bare = ''] =
      /^\s*([\w*-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*))\s*(?:,|$)/.exec(rest) ?? []
    if (all === '') return fields
    fields.set(name, quoted?.replace(/\\(.)/g, '$1') ?? bare)
    rest = rest.slice(all.length)
  }
}

/**
 * The response that RFC 7616 (3.4) asks for, reckoned from the words of the RFC over bytes: the server's side, which shares nothing with the
 * code under test.
 *
 * @param fields - of the `Authorization` header.
 */
export function digestResponse(
  fields: ReadonlyMap<string, string>,
  { user, password }: KnownLogin,
  method: string,
  body: Uint8Array = new Uint8Array(),
): string {
  const algorithm = fields.get('algorithm') ?? 'MD5'
  const name = { MD5: 'md5', 'SHA-256': 'sha256', 'SHA-512-256': 'sha512-256' }[
    algorithm.replace(/-sess$/i, '').toUpperCase()
  ]
  if (name === undefined) return 'no such algorithm'
  const h = (...parts: (string | Uint8Array)[]) => {
    const hash = createHash(name)
    for (const part of parts) hash.update(typeof part === 'string' ? Buffer.from(part, 'latin1') : part)
    return hash.digest('hex')
  }
  const get = (field: string) => fields.get(field) ?? ''
  const userRealmPassword = h(user, ':', get('realm'), ':', password)
  const a1 = /-sess$/i.test(algorithm)
    ? h(userRealmPassword, ':', get('nonce'), ':', get('cnonce'))
    : userRealmPassword
  const qop = fields.get('qop')
  const a2 = h(method, ':', get('uri'), ...(qop === 'auth-int' ? [':', h(body)] : []))
  return qop === undefined
    ? h(a1, ':', get('nonce'), ':', a2)
    : h(a1, ':', get('nonce'), ':', get('nc'), ':', get('cnonce'), ':', qop, ':', a2)
}

/** How a server names its user where it hides the name (`userhash`). */
export function hiddenUser(algorithm: string, user: Buffer, realm: string): string {
  const name =
    { MD5: 'md5', 'SHA-256': 'sha256', 'SHA-512-256': 'sha512-256' }[algorithm.replace(/-sess$/i, '')] ??
    'md5'
  return createHash(name).update(user).update(`:${realm}`, 'latin1').digest('hex')
}
