import { describe, expect, it } from 'vitest'
import {
  maxProxyHeaderBytes,
  proxyHeader,
  ProxyHeaderError,
  readProxyHeader,
} from '../../src/api/proxy-header.js'

const subject = 'C=DE, O=Press shop, CN=robot 7'

describe('the header of who a connection is from', () => {
  it.each([
    { address: '192.0.2.7', port: 51_000 },
    { address: '::1', port: 1 },
    { address: '2001:db8::7:0:1', port: 65_535 },
    { address: '::ffff:192.0.2.7', port: 443 },
    { address: '192.0.2.7', port: 51_000, subject },
    { address: '::1', port: 1, subject: 'CN=Prüfstand' },
  ])('comes back as it was: $address $subject', (peer) => {
    const header = proxyHeader(peer)
    expect(header.length).toBeLessThanOrEqual(maxProxyHeaderBytes)
    expect(readProxyHeader(header)).toEqual({ peer, bytes: header.length })
    expect(readProxyHeader(Buffer.concat([header, Buffer.from('GET / HTTP/1.1')]))).toEqual({
      peer,
      bytes: header.length,
    })
    for (let length = 0; length < header.length; length++)
      expect(readProxyHeader(header.subarray(0, length))).toBeUndefined()
  })

  it('is version 2 of the PROXY protocol', () => {
    const header = proxyHeader({ address: '192.0.2.7', port: 258 })
    expect(header.toString('hex')).toBe(
      '0d0a0d0a000d0a515549540a' + '2111000c' + 'c0000207' + '00000000' + '0102' + '0000',
    )
  })

  it('leaves out what of a subject is too long, and the zone of an address', () => {
    const header = proxyHeader({ address: 'fe80::1%eth0', port: 5, subject: 'x'.repeat(70_000) })
    expect(header.length).toBeLessThanOrEqual(maxProxyHeaderBytes)
    expect(readProxyHeader(header)?.peer).toEqual({ address: 'fe80::1', port: 5, subject: 'x'.repeat(1_024) })
  })

  it.each([
    ['a request', Buffer.from('GET / HTTP/1.1\r\n')],
    ['another version', Buffer.from('0d0a0d0a000d0a515549540a1111000c', 'hex')],
    ['more than there may be', Buffer.from('0d0a0d0a000d0a515549540a2111ffff', 'hex')],
    ['an address that is too short', Buffer.from('0d0a0d0a000d0a515549540a21110002c000', 'hex')],
    ['no family', Buffer.from('0d0a0d0a000d0a515549540a2100000cc000020700000000010200ff', 'hex')],
  ])('refuses %s', (_, data) => {
    expect(() => readProxyHeader(data)).toThrow(ProxyHeaderError)
  })
})
