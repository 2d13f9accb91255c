/** A login inside of a URL whose characters would end it too early: what was typed cannot be told for certain, and part of it would be a host. */
export type RawLogin = Readonly<{
  /** `@ as %40 and # as %23`; the characters, and nothing of what they stand in. */
  escapes: string
  /** The URL as it is meant, with `***` for the login. */
  meant: string
}>

/** What a host may be followed by. */
const authorityEnd = /[/?#\\]/
/** IPv4 or IPv6, as it stands in a URL, with its port. */
const address = /^(\d{1,3}(\.\d{1,3}){3}|\[[0-9a-f:.]+\])(:\d*)?$/i
/** Accounts that cameras are delivered with, and are logged in to as. */
const usualNames = /^(admin|administrator|root|user|viewer|operator|guest|service|supervisor|default)$/i

const escapes: Readonly<Record<string, string>> = {
  '@': '%40',
  '/': '%2F',
  '#': '%23',
  '?': '%3F',
  '\\': '%5C',
  ' ': '%20',
  '%': '%25',
}

/**
 * Finds a login that must be escaped, by where a reader of URLs would end it and where its writer did. An "@" of a path or a query is one of
 * those where the host before it can be no part of a login.
 *
 * @param hasPath - what is behind the host may hold an "@" of its own; not so where it is the number of a database.
 */
export function rawLogin(url: string, hasPath = true): RawLogin | undefined {
  const [, scheme, rest] = /^([a-z][a-z0-9+.-]*:\/\/)(.*)$/is.exec(url) ?? []
  if (scheme === undefined || rest === undefined || /^file:/i.test(scheme) || !rest.includes('@'))
    return undefined
  const authority = rest.slice(0, endOf(rest))
  const tail = rest.slice(authority.length)
  const isCut = tail.includes('@') && !(hasPath && isOfPath(authority, tail))
  const login = rest.slice(0, isCut ? meantEnd(rest, authority) : authority.lastIndexOf('@'))
  const characters = rawCharacters(login, isCut)
  if (characters.length === 0) return undefined
  const written = characters.map(
    (character) => `${character === ' ' ? 'a space' : character} as ${escapes[character]}`,
  )
  return {
    escapes: [written.slice(0, -1).join(', '), written.at(-1)].filter(Boolean).join(' and '),
    meant: `${scheme}***@${rest.slice(login.length + 1)}`,
  }
}

function endOf(rest: string): number {
  const end = rest.search(authorityEnd)
  return end < 0 ? rest.length : end
}

/** Where a login ends that goes on behind what would be its host: where an address follows, else at the last "@". */
function meantEnd(rest: string, authority: string): number {
  const ends = [...rest.matchAll(/@/g)].map(({ index }) => index).filter((at) => at > authority.length)
  return ends.find((at) => isAddress(hostBehind(rest, at))) ?? ends.at(-1) ?? 0
}

function hostBehind(rest: string, at: number): string {
  const behind = rest.slice(at + 1)
  return behind.slice(0, endOf(behind))
}

function isAddress(host: string): boolean {
  return address.test(host)
}

/** Whether every "@" behind the authority belongs there. */
function isOfPath(authority: string, tail: string): boolean {
  const host = authority.slice(authority.lastIndexOf('@') + 1)
  if (isAddress(host) || /^localhost(:\d+)?$/i.test(host)) return true
  const [, name = '', port] = /^([^:]*)(?::(.*))?$/s.exec(host) ?? []
  if (name === '' || (port !== undefined && !/^\d+$/.test(port))) return false
  const [, path = '', query = '', fragment = ''] = /^([^?#]*)(\?[^#]*)?(#.*)?$/s.exec(tail) ?? []
  if (fragment.includes('@')) return false
  const hasDot = name.includes('.')
  const isNamed = /^\?[\w.%-]+=/.test(query)
  if (query.includes('@') && (!isNamed || (path === '' && !hasDot))) return false
  if (!path.includes('@')) return true
  if (authority.includes('@')) return false
  if (hasDot) return true
  const behind = hostBehind(path, path.lastIndexOf('@'))
  if (port === undefined) return !(isAddress(behind) && path.slice(0, path.lastIndexOf('@')).includes(':'))
  const isHost = isAddress(behind) || (behind.includes('.') && !path.endsWith(`@${behind}`))
  return !isHost && !usualNames.test(name)
}

/** Characters of a login that cannot stand as they are, each once. */
function rawCharacters(login: string, isCut: boolean): string[] {
  const raw = isCut ? /[@/#?\\ ]/g : /[\\ ]/g
  const found = [...login.matchAll(raw)].map(([character]) => character)
  // By itself it is taken as typed; beside escapes nobody knows which of them are meant.
  const isMixed = /%[0-9a-f]{2}/i.test(login) && /%(?![0-9a-f]{2})/i.test(login)
  const isUnclear = /%(?![0-9a-f]{2})/i.test(login) && found.length > 0
  return [...new Set(isMixed || isUnclear ? [...found, '%'] : found)]
}

/**
 * A URL with a login in it.
 *
 * @param username - as it is, without escapes; so is the password.
 * @returns the URL as it is where it can hold none.
 */
export function withLogin(url: string, username: string, password: string): string {
  if (!URL.canParse(url)) return url
  const parsed = new URL(url)
  parsed.username = encodeURIComponent(username)
  parsed.password = encodeURIComponent(password)
  return parsed.username + parsed.password === '' ? url : parsed.href
}

/** Whether a URL holds a login. */
export function holdsLogin(url: string): boolean {
  if (!URL.canParse(url)) return false
  const { username, password } = new URL(url)
  return username + password !== ''
}
