import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ConfigError } from '../../src/config/config-error.js'
import { loadPipeline } from '../../src/config/load.js'
import { printConfig } from '../../src/config/print.js'
import { type IssuedFiles, TestAuthority } from '../support/test-authority.js'

let authority: TestAuthority
let own: IssuedFiles
beforeAll(() => {
  authority = new TestAuthority()
  own = authority.issue('own')
  authority.issue('locked', { passphrase: 'open sesame' })
  writeFileSync(join(authority.folder, 'token'), 'a.b.c\n')
  mkdirSync(join(authority.folder, 'a-folder'))
})
afterAll(() => authority.remove())

let files = 0
function load(yaml: string, env: Record<string, string> = {}) {
  const path = join(authority.folder, `${(files += 1)}.yaml`)
  writeFileSync(path, `apiVersion: gantry/v1\n${yaml}\n`)
  return loadPipeline(path, { env }).config
}

/** `path: message; hint` of every problem. */
function told(yaml: string, env?: Record<string, string>): string[] {
  try {
    load(yaml, env)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map(({ path, message, hint }) =>
      `${path}: ${message}; ${hint ?? ''}`.replaceAll(`${authority.folder}/`, ''),
    )
  }
  throw new Error('the settings were accepted')
}

const kafka = (rest: string) => `sinks: { kafka: { brokers: ["127.0.0.1:9092"], ${rest} } }`
const cache = (redis: string) => `cache: { redis: ${redis} }`
const matching = (...words: RegExp[]) => words.map((word) => expect.stringMatching(word) as string)

describe('sinks.kafka', () => {
  it('S15: takes what configurations of before say', () => {
    expect(load(kafka('ssl: true')).sinks.kafka?.ssl).toBe(true)
    expect(load(kafka('')).sinks.kafka?.ssl).toBe(false)
    const variables = { GANTRY__SINKS__KAFKA__SSL: 'true', GANTRY__SINKS__KAFKA__COMPRESSION: 'none' }
    expect(load(kafka(''), variables).sinks.kafka).toMatchObject({ ssl: true, compression: 'none' })
    const sasl = load(kafka('sasl: { mechanism: plain, username: u, password: "" }')).sinks.kafka?.sasl
    expect(sasl).toEqual({ mechanism: 'plain', username: 'u', password: '' })
    expect(load(cache('"redis://127.0.0.1"')).cache.redis).toBe('redis://127.0.0.1')
    expect(load('', { GANTRY__CACHE__REDIS: 'redis://127.0.0.1' }).cache.redis).toBe('redis://127.0.0.1')
  })

  it('reads files of a certificate from where the pipeline file lies, also by variables', () => {
    const ssl = { ca: authority.ca, cert: own.cert, key: own.key }
    expect(load(kafka('ssl: { ca: ca.pem, cert: ./own.pem, key: own.key }')).sinks.kafka?.ssl).toEqual(ssl)
    const variables = { GANTRY__SINKS__KAFKA__SSL__CA: authority.ca }
    expect(load(kafka('ssl: true'), variables).sinks.kafka?.ssl).toEqual({ ca: authority.ca })
    const json = { GANTRY__SINKS__KAFKA__SSL: JSON.stringify(ssl) }
    expect(load(kafka(''), json).sinks.kafka?.ssl).toEqual(ssl)
  })

  it('S15: tells what is wrong with the files, at their settings', () => {
    expect(told(kafka('ssl: { ca: none.pem }'))).toEqual(
      matching(/^sinks\.kafka\.ssl\.ca: none\.pem is not there; relative paths/),
    )
    expect(told(kafka('ssl: { ca: a-folder }'))).toEqual(matching(/ssl\.ca: a-folder is a folder/))
    expect(told(kafka('ssl: { cert: own.pem }'))).toEqual(matching(/ssl\.cert: has no key beside it/))
    expect(told(kafka('ssl: { cert: own.pem, key: locked.key }'))).toEqual(
      matching(/ssl\.key: locked\.key is a key with a passphrase/),
    )
    expect(told(kafka('ssl: { cert: own.pem, key: locked.key, passphrase: open sesame }'))).toEqual(
      matching(/ssl\.key: locked\.key is not the key of the certificate in own\.pem/),
    )
    expect(told(kafka('ssl: { cert: ca.pem, key: own.key }'))).toEqual(matching(/is not the key/))
    expect(told(kafka('ssl: { ca: own.key }'))).toEqual(matching(/holds a private key and no certificate/))
    expect(told(kafka(''), { GANTRY__SINKS__KAFKA__SSL__CA: '/none.pem' })).toEqual(
      matching(/^GANTRY__SINKS__KAFKA__SSL__CA: \/none\.pem is not there/),
    )
  })

  it('tells keys and types that a section or a switch does not have', () => {
    expect(told(kafka('ssl: { caFile: x }'))).toEqual(matching(/^sinks\.kafka\.ssl\.caFile: unknown key/))
    expect(told(kafka('ssl: yes please'))).toEqual(
      matching(/^sinks\.kafka\.ssl: must be true or false or a section of settings, not a text/),
    )
    expect(told(kafka('ssl: { ca: 7 }'))).toEqual(matching(/^sinks\.kafka\.ssl\.ca: must be a text/))
    expect(told(kafka('ssl: { servername: "kafka:9093" }'))).toEqual(
      matching(/ssl\.servername: must be a name/),
    )
    expect(told(kafka('compression: brotli'))).toEqual(
      matching(/compression: must be one of none, gzip, snappy, lz4, zstd/),
    )
  })

  it.each([
    ['mechanism: plain, username: u', [/sasl\.password: missing: mechanism plain needs it/]],
    ['mechanism: scram-sha-256', [/password: missing/, /username: missing/]],
    ['mechanism: plain, username: u, password: p, token: t', [/token: is not for mechanism plain/]],
    ['mechanism: oauthbearer', [/tokenEndpoint: missing/]],
    ['mechanism: oauthbearer, token: t, username: u', [/username: is not for mechanism oauthbearer/]],
    [
      'mechanism: oauthbearer, tokenEndpoint: "https://idp/token"',
      [/clientId: missing/, /clientSecret: missing/],
    ],
    [
      'mechanism: oauthbearer, tokenEndpoint: "idp/token", clientId: a, clientSecret: b',
      [/tokenEndpoint: must be the https/],
    ],
    ['mechanism: oauthbearer, token: t, tokenFile: token', [/tokenFile: stands beside token/]],
    ['mechanism: oauthbearer, tokenFile: none', [/tokenFile: cannot read the token: ENOENT/]],
    ['mechanism: kerberos', [/mechanism: must be one of plain/]],
  ])('tells what a login lacks or has too much: %s', (sasl, words) => {
    expect(told(kafka(`sasl: { ${sasl} }`)).sort()).toEqual(matching(...words))
  })

  it('keeps a token in its file, by every way to name one', () => {
    const tokenFile = join(authority.folder, 'token')
    const sasl = { mechanism: 'oauthbearer', tokenFile }
    expect(load(kafka('sasl: { mechanism: oauthbearer, tokenFile: token }')).sinks.kafka?.sasl).toEqual(sasl)
    expect(load(kafka('sasl: { mechanism: oauthbearer, token: "${file:token}" }')).sinks.kafka?.sasl).toEqual(
      sasl,
    )
    const variables = { GANTRY__SINKS__KAFKA__SASL__TOKEN_FILE: tokenFile }
    expect(load(kafka('sasl: { mechanism: oauthbearer }'), variables).sinks.kafka?.sasl).toEqual(sasl)
  })

  it('S16: shows no secret of a login', () => {
    const ssl = 'ssl: { cert: locked.pem, key: locked.key, passphrase: open sesame }'
    const sasl =
      'sasl: { mechanism: oauthbearer, tokenEndpoint: "https://idp/token", clientId: a, clientSecret: Canary-7Pass }'
    const redis = '{ sentinels: ["a:1"], name: m, password: Canary-7Pass, sentinelPassword: Canary-7Pass }'
    const text = printConfig(load(`${kafka(`${ssl}, ${sasl}`)}\n${cache(redis)}`))
    expect(text).not.toMatch(/Canary|open sesame/)
    expect(text).toContain('clientSecret: "***"')
    expect(told(cache('{ url: "Canary-7Pass" }')).join()).not.toContain('Canary')
    expect(
      told(kafka('sasl: { mechanism: oauthbearer, clientSecret: { a: Canary-7Pass } }')).join(),
    ).not.toContain('Canary')
  })
})

describe('cache.redis and models.cache.redis', () => {
  it.each([
    '{ url: "rediss://127.0.0.1:6380", tls: { ca: ca.pem } }',
    '{ nodes: ["127.0.0.1:7000", "[::1]:7001"], username: u, password: p }',
    '{ sentinels: ["a:26379", "b:26379"], name: plant, sentinelPassword: p, database: 2, tls: true }',
  ])('take %s', (redis) => {
    expect(load(cache(redis)).cache.redis).toBeTypeOf('object')
    expect(load(`models: { cache: { redis: ${redis} } }`).models.cache.redis).toBeTypeOf('object')
  })

  it.each([
    ['{ }', /cache\.redis: says no server/],
    ['{ url: "redis://a", nodes: ["a:1"] }', /nodes: stands beside url/],
    ['{ sentinels: ["a:1"] }', /sentinels: needs name/],
    ['{ url: "redis://a", name: m }', /name: is for sentinels/],
    ['{ url: "redis://u:p@a", password: q }', /password: stands beside a login in url/],
    ['{ nodes: ["a:1"], username: u }', /username: needs password/],
    ['{ nodes: ["a:1"], database: 1 }', /database: is for one server/],
    ['{ url: "redis://a", database: 1 }', /database: stands in url/],
    ['{ nodes: ["redis://a:1"] }', /nodes\[0\]: must be host:port/],
    ['{ nodes: ["a:70000"] }', /nodes\[0\]: the port must be at most/],
    ['{ url: "rediss://a", tls: false }', /tls: is false beside a rediss/],
    ['{ url: "http://a" }', /redis\.url: must be a redis:\/\/ or rediss/],
    ['{ host: a }', /redis\.host: unknown key/],
    ['7', /cache\.redis: must be a text or a section of settings, not a number/],
    ['"http://a"', /cache\.redis: must be a redis:\/\/ or rediss/],
    ['{ url: "rediss://a", tls: { ca: none.pem } }', /cache\.redis\.tls\.ca: none\.pem is not there/],
  ])('refuse %s', (redis, words) => {
    expect(told(cache(redis)).join('\n')).toMatch(words)
  })

  it('take a section and its parts from variables', () => {
    const json = { GANTRY__CACHE__REDIS: '{"nodes":["a:1"]}' }
    expect(load('', json).cache.redis).toEqual({ nodes: ['a:1'] })
    const parts = { GANTRY__CACHE__REDIS__NODES: '["a:1"]', GANTRY__CACHE__REDIS__TLS__CA: authority.ca }
    expect(load('', parts).cache.redis).toEqual({ nodes: ['a:1'], tls: { ca: authority.ca } })
  })
})
