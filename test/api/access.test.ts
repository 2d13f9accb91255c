import { describe, expect, it } from 'vitest'
import {
  hostAccepted,
  isFromBrowser,
  isLoopbackHost,
  originAccepted,
  tokenAccepted,
} from '../../src/api/access.js'

const loopback = { host: '127.0.0.1', allowedOrigins: ['https://wall.example'], allowedHosts: [] }
const everywhere = { host: '0.0.0.0', allowedOrigins: [], allowedHosts: [] }

describe('hostAccepted', () => {
  it.each([
    ['127.0.0.1:8000', true],
    ['localhost', true],
    ['LOCALHOST:1', true],
    ['[::1]:8000', true],
    ['gantry.localhost:8000', true],
    ['wall.example', true],
    ['evil.example:8000', false],
    ['127.0.0.1.evil.example', false],
    ['localhost.evil.example', false],
    ['localhost@evil.example', false],
    ['localhost?.evil.example', false],
    ['localhost.', true],
    ['127.0.0.1.', true],
    ['[0:0:0:0:0:0:0:1]', true],
    ['[::ffff:127.0.0.1]:8000', true],
    ['wall.example.:443', true],
    ['evil.example.', false],
    ['192.168.1.9:8000', false],
    ['.', false],
    ['[]', false],
  ])('on loopback, %j is %s', (host, accepted) => {
    expect(hostAccepted({ host }, loopback)).toBe(accepted)
  })

  it.each([
    ['192.168.1.9:8000', true],
    ['[fe80::1]:8000', true],
    ['gantry:8000', true],
    ['gantry.', true],
    ['evil.example', false],
  ])('on a public address, %j is %s', (host, accepted) => {
    expect(hostAccepted({ host }, everywhere)).toBe(accepted)
  })

  it('asks nothing of HTTP/1.0, which has no Host, or of an empty one: a browser always sends a name', () => {
    expect(hostAccepted({}, loopback)).toBe(true)
    expect(hostAccepted({ host: '' }, loopback)).toBe(true)
    expect(hostAccepted({ host: '' }, everywhere)).toBe(true)
  })

  it.each([
    ['triton.default.svc.cluster.local', 'triton.default.svc.cluster.local:8000', true],
    ['triton.default.svc.cluster.local', 'TRITON.default.svc.cluster.local.:1', true],
    ['Plant.Example.', 'plant.example', true],
    ['plant.example', 'a.plant.example', false],
    ['plant.example', 'plant.example.evil.example', false],
    ['plant.example', 'evil-plant.example', false],
    ['.plant.example', 'plant.example', true],
    ['.plant.example', 'a.b.plant.example:8000', true],
    ['.plant.example', 'evilplant.example', false],
    ['.plant.example', 'plant.example.evil', false],
    ['*.plant.example', 'a.plant.example', true],
    ['*.plant.example', 'plant.example', false],
    ['*.plant.example', 'evilplant.example', false],
    ['bücher.example', 'xn--bcher-kva.example', true],
    ['my_host', 'my_host:8000', true],
    ['192.168.1.9', '192.168.1.9:8000', true],
    ['fe80::1', '[FE80:0:0::1]:8000', true],
    ['[fe80::1]', '[fe80::1]', true],
    ['fe80::1', '[fe80::2]', false],
  ])('with %j allowed, %j is %s', (allowed, host, accepted) => {
    expect(hostAccepted({ host }, { ...loopback, allowedHosts: [allowed] })).toBe(accepted)
  })
})

describe('isFromBrowser', () => {
  it.each([
    ['a page that posts', { origin: 'http://evil.example' }, true],
    ['a page that hides its origin', { origin: 'null' }, true],
    ['a page that reads, over TLS', { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' }, true],
    ['an address typed in', { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' }, true],
    ['fetch of Node, which is no browser', { 'sec-fetch-mode': 'cors', 'user-agent': 'node' }, false],
    ['curl', { 'user-agent': 'curl/7.88.1' }, false],
  ])('%s: %s', (_, headers, expected) => {
    expect(isFromBrowser(headers)).toBe(expected)
  })
})

describe('originAccepted', () => {
  const host = '127.0.0.1:8000'
  it.each([
    ['a program without an Origin', 'POST', {}, true],
    ['our own page', 'POST', { origin: 'http://127.0.0.1:8000' }, true],
    ['our own page behind a proxy with TLS', 'POST', { origin: 'https://127.0.0.1:8000' }, true],
    ['a page on another port', 'GET', { origin: 'http://127.0.0.1:9000' }, false],
    ['a page that hides its origin', 'POST', { origin: 'null' }, false],
    ['an empty origin', 'POST', { origin: '' }, false],
    ['a foreign page', 'GET', { origin: 'http://evil.example' }, false],
    ['a page that is allowed', 'POST', { origin: 'https://wall.example' }, true],
    [
      'our own page at a port that the proxy names',
      'POST',
      { host: 'a.example:443', origin: 'https://a.example' },
      true,
    ],
    [
      'a page at the port of another scheme',
      'POST',
      { host: 'a.example:443', origin: 'http://a.example' },
      false,
    ],
    [
      'our own page, in upper case',
      'POST',
      { host: 'A.Example:8000', origin: 'http://a.example:8000' },
      true,
    ],
    [
      'a Host that only begins like the origin',
      'POST',
      { host: 'a.example/x', origin: 'http://a.example' },
      false,
    ],
    ['an allowed name with another scheme', 'POST', { origin: 'http://wall.example' }, false],
    [
      'a picture on a foreign page',
      'GET',
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' },
      false,
    ],
    [
      'a link on a foreign page',
      'GET',
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' },
      true,
    ],
    [
      'a form on a foreign page',
      'POST',
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' },
      false,
    ],
    ['an address typed in', 'GET', { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' }, true],
  ])('%s: %s', (_, method, headers, accepted) => {
    expect(originAccepted(method, { host, ...headers }, loopback)).toBe(accepted)
  })
})

describe('tokenAccepted', () => {
  const settings = { ...loopback, token: 'a-long-enough-token-é' }
  const encoded = Buffer.from(settings.token).toString('base64url')
  it.each([
    ['no token', {}, false],
    ['the bearer token', { authorization: 'Bearer a-long-enough-token-é' }, true],
    ['a scheme in another case', { authorization: 'bearer a-long-enough-token-é' }, true],
    ['a wrong token', { authorization: 'Bearer a-long-enough-token-x' }, false],
    ['a prefix', { authorization: 'Bearer a-long' }, false],
    ['another scheme', { authorization: 'Basic a-long-enough-token-é' }, false],
    ['a sub-protocol', { 'sec-websocket-protocol': `gantry.v1, gantry.token.${encoded}` }, true],
    ['a wrong sub-protocol', { 'sec-websocket-protocol': 'gantry.v1, gantry.token.AAAA' }, false],
  ])('%s', (_, headers, accepted) => {
    expect(tokenAccepted(headers, settings)).toBe(accepted)
  })

  it('accepts all while no token is set', () => {
    expect(tokenAccepted({}, loopback)).toBe(true)
  })
})

it.each([
  ['127.0.0.1', true],
  ['127.8.8.8', true],
  ['localhost', true],
  ['::1', true],
  ['[::1]', true],
  ['::', false],
  ['0.0.0.0', false],
  ['192.168.0.1', false],
  ['gantry', false],
  ['127.0.0.1.example', false],
])('isLoopbackHost(%j) is %s', (host, expected) => {
  expect(isLoopbackHost(host)).toBe(expected)
})
