import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'

/**
 * One spelling of a host: lower case, no brackets, no dot at the end, IPv6 as short as it can be and without its zone.
 *
 * @param host - of a `Host` header without its port, or of a setting.
 */
export function canonicalHost(host: string): string {
  const bare = host.replace(/^\[(.*)\]$/, '$1').toLowerCase()
  if (isIP(bare) !== 6) return bare.replace(/\.$/, '')
  return new URL(`http://[${bare.replace(/%.*/, '')}]`).hostname.slice(1, -1)
}

/**
 * Whether an entry of `server.allowedHosts` means this host: a name or address itself, `.example.com` with all that is below it,
 * `*.example.com` what is below it alone.
 *
 * @param host - as {@link canonicalHost} gives it.
 */
export function allowsHost(entry: string, host: string): boolean {
  const allowed = canonicalHost(toAscii(entry))
  if (allowed.startsWith('*.')) return host.endsWith(allowed.slice(1))
  if (allowed.startsWith('.')) return host === allowed.slice(1) || host.endsWith(allowed)
  return host === allowed
}

/** What is wrong with an entry of `server.allowedHosts`, and what to write instead; `undefined` when nothing is. */
export function allowedHostFault(entry: string): string | undefined {
  if (entry === '*')
    return '"*" would let every page rebind its name to this service, which protects nothing; name the hosts, or a domain as ".example.com"'
  const [, scheme, rest = ''] = /^([a-z][a-z0-9+.-]*:\/\/)?(.*)$/is.exec(entry) ?? []
  const [, name = ''] = /^(\[[^\]]*\]|[^:/]+)(?::\d*)?\/?$/.exec(rest) ?? []
  if (scheme !== undefined && isHost(name)) return `is a URL; write the name alone: "${name}"`
  if (scheme === undefined && entry.startsWith(`${name}:`) && isHost(name))
    return `names a port; write the name alone, for every port: "${name}"`
  return isHost(entry) || isHost(entry.replace(/^\*?\./, ''))
    ? undefined
    : 'must be a host name such as "gantry.example.com", ".example.com" for a domain and all below it, or an address'
}

function isHost(text: string): boolean {
  if (isIP(canonicalHost(text)) !== 0) return true
  // What makes the rest of a URL would be cut off.
  if (/[/?#@%\\\s]/.test(text)) return false
  const name = canonicalHost(toAscii(text))
  return name.length <= 253 && isIP(name) === 0 && /^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$/.test(name)
}

/** Names of other alphabets as they stand in a `Host` header; other text as it is. */
function toAscii(name: string): string {
  return domainToASCII(name) || name
}
