import { describe, expect, it } from 'vitest'
import { hostAccepted, isLoopbackHost, originAccepted, tokenAccepted } from '../../src/server/access.js'

const loopback = { host: '127.0.0.1', allowedOrigins: ['https://wall.example'] }
const everywhere = { host: '0.0.0.0', allowedOrigins: [] }

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
    ['192.168.1.9:8000', false],
    ['', false],
    [undefined, false],
  ])('on loopback, %j is %s', (host, accepted) => {
    expect(hostAccepted({ host }, loopback)).toBe(accepted)
  })

  it.each([
    ['192.168.1.9:8000', true],
    ['[fe80::1]:8000', true],
    ['gantry:8000', true],
    ['evil.example', false],
  ])('on a public address, %j is %s', (host, accepted) => {
    expect(hostAccepted({ host }, everywhere)).toBe(accepted)
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
