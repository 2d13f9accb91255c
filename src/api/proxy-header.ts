import { isIP } from 'node:net'
import type { Peer } from './peer.js'

/**
 * What goes before the bytes of a connection that another process of ours took: the PROXY protocol, version 2.
 *
 * @see https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt
 */
const signature = Buffer.from('0d0a0d0a000d0a515549540a', 'hex')
const fixedBytes = 16
const version2Proxy = 0x21
const families = { 4: { code: 0x11, bytes: 4 }, 6: { code: 0x21, bytes: 16 } } as const
const [tlsEntry, commonNameEntry] = [0x20, 0x22]
/** A client's certificate was shown over this connection. */
const withCertificate = 0x07
const tlsHeadBytes = 5
/** Longest subject that is told. */
const subjectBytes = 1_024
/** Longest header that {@link proxyHeader} makes. */
export const maxProxyHeaderBytes = fixedBytes + 36 + 3 + tlsHeadBytes + 3 + subjectBytes

/** The header for a connection of a client. */
export function proxyHeader({ address, port, subject }: Peer): Buffer {
  const family = isIP(address) === 4 ? 4 : 6
  const { code, bytes } = families[family]
  // Where it was taken is not told: nobody asks.
  const addresses = Buffer.alloc(2 * bytes + 4)
  addressBytes(address, family).copy(addresses)
  addresses.writeUInt16BE(port, 2 * bytes)
  const entries = subject === undefined ? Buffer.alloc(0) : tlsBytes(subject)
  const head = Buffer.alloc(fixedBytes)
  signature.copy(head)
  head[12] = version2Proxy
  head[13] = code
  head.writeUInt16BE(addresses.length + entries.length, 14)
  return Buffer.concat([head, addresses, entries])
}

function tlsBytes(subject: string): Buffer {
  const text = Buffer.from(subject).subarray(0, subjectBytes)
  const head = Buffer.alloc(tlsHeadBytes)
  head[0] = withCertificate
  return entry(tlsEntry, Buffer.concat([head, entry(commonNameEntry, text)]))
}

function entry(type: number, value: Buffer): Buffer {
  const head = Buffer.alloc(3)
  head[0] = type
  head.writeUInt16BE(value.length, 1)
  return Buffer.concat([head, value])
}

/** A connection did not begin as {@link proxyHeader} makes it. */
export class ProxyHeaderError extends TypeError {}

/**
 * Reads a header at the start of what came of a connection.
 *
 * @returns undefined where more has to come. @throws ProxyHeaderError
 */
export function readProxyHeader(data: Buffer): Readonly<{ peer: Peer; bytes: number }> | undefined {
  const start = Math.min(data.length, signature.length)
  if (!data.subarray(0, start).equals(signature.subarray(0, start))) throw new ProxyHeaderError('no header')
  if (data.length < fixedBytes) return undefined
  const bytes = fixedBytes + data.readUInt16BE(14)
  if (data[12] !== version2Proxy || bytes > maxProxyHeaderBytes) throw new ProxyHeaderError('not ours')
  if (data.length < bytes) return undefined
  const family = data[13] === families[4].code ? 4 : 6
  const at = fixedBytes + 2 * families[family].bytes
  if (data[13] !== families[family].code || bytes < at + 4) throw new ProxyHeaderError('no address')
  const address = addressText(data.subarray(fixedBytes, fixedBytes + families[family].bytes), family)
  const subject = subjectIn(data.subarray(at + 4, bytes))
  return { peer: { address, port: data.readUInt16BE(at), ...(subject !== undefined && { subject }) }, bytes }
}

function subjectIn(entries: Buffer): string | undefined {
  if (entries.length < 3 + tlsHeadBytes + 3 || entries[0] !== tlsEntry) return undefined
  return entries.toString('utf8', 3 + tlsHeadBytes + 3)
}

function addressBytes(address: string, family: 4 | 6): Buffer {
  if (family === 4) return Buffer.from(address.split('.').map(Number))
  const groups = fullGroups(address)
  const bytes = Buffer.alloc(16)
  groups.forEach((group, index) => bytes.writeUInt16BE(group, 2 * index))
  return bytes
}

/** The eight groups of an IPv6 address; zeros for text that is none. */
function fullGroups(address: string): number[] {
  const bare = address.replace(/%.*/, '')
  // One spelling: no IPv4 part.
  const text = isIP(bare) === 6 ? new URL(`http://[${bare}]`).hostname.slice(1, -1) : '::'
  const [left = '', right] = text.split('::')
  const groups = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((hex) => parseInt(hex, 16))
  if (right === undefined) return groups(left)
  const [first, last] = [groups(left), groups(right)]
  return [...first, ...Array<number>(8 - first.length - last.length).fill(0), ...last]
}

/** As Node writes the address of a socket. */
function addressText(bytes: Buffer, family: 4 | 6): string {
  if (family === 4) return [...bytes].join('.')
  const mapped = Buffer.from('00000000000000000000ffff', 'hex')
  if (bytes.subarray(0, 12).equals(mapped)) return `::ffff:${[...bytes.subarray(12)].join('.')}`
  const groups = Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(2 * index).toString(16))
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)
}
