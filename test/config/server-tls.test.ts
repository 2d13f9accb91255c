import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ConfigError } from '../../src/config/config-error.js'
import { loadPipeline, type SettingSources } from '../../src/config/load.js'
import { serverTlsFaults, validityFault, validityOf } from '../../src/config/server-tls.js'
import { otherUserWorks, thrownForOther } from '../support/other-user.js'
import { type IssuedFiles, TestAuthority } from '../support/test-authority.js'

let authority: TestAuthority
let own: IssuedFiles
let dir: string

beforeAll(() => {
  authority = new TestAuthority('test authority')
  own = authority.issue('own')
  dir = authority.folder
  authority.issue('other')
  authority.issue('locked', { passphrase: 'open sesame' })
  mkdirSync(join(dir, 'a-folder'))
  writeFileSync(join(dir, 'text'), 'hello')
  writeFileSync(join(dir, 'reversed.pem'), authority.text(authority.ca) + authority.text(own.cert))
  writeFileSync(join(dir, 'stray.pem'), authority.text(own.cert) + authority.text(join(dir, 'other.pem')))
  authority.openssl('x509', '-in', own.cert, '-outform', 'der', '-out', join(dir, 'own.der'))
})

afterAll(() => authority.remove())

function problemsOf(yaml: string, sources: SettingSources = { toServe: true }): readonly string[] {
  const file = join(dir, 'pipeline.yaml')
  writeFileSync(file, `apiVersion: gantry/v1\n${yaml}`)
  try {
    loadPipeline(file, sources)
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map(
      ({ line, path, message }) => `${line}: ${path}: ${message.replaceAll(`${dir}/`, '')}`,
    )
  }
}

describe('server.tls', () => {
  it('starts relative paths at the folder of the file, and each is found there', () => {
    expect(problemsOf('server: { tls: { cert: own.pem, key: own.key, clientCa: ca.pem } }')).toEqual([])
    const { config } = loadPipeline(join(dir, 'pipeline.yaml'))
    expect(config.server.tls).toEqual({ ...own, clientCa: authority.ca })
  })

  it('can come from the environment', () => {
    writeFileSync(join(dir, 'empty.yaml'), 'apiVersion: gantry/v1\n')
    const { config } = loadPipeline(join(dir, 'empty.yaml'), {
      env: { GANTRY__SERVER__TLS__CERT: own.cert, GANTRY__SERVER__TLS__KEY: own.key },
      toServe: true,
    })
    expect(config.server.tls).toEqual(own)
  })

  it.each([
    ['server: { tls: { cert: own.pem } }', ['2: server.tls.key: missing: TLS needs']],
    ['server: { tls: { key: own.key } }', ['2: server.tls.cert: missing: TLS needs']],
    ['server: { tls: { clientCa: ca.pem } }', ['2: server.tls.cert: missing', '2: server.tls.key: missing']],
    ['server: { tls: true }', ['2: server.tls: must be a section of settings, not true']],
    ['server:\n  tls:\n    cert: none.pem\n    key: own.key', ['4: server.tls.cert: none.pem is not there']],
    ['server: { tls: { cert: own.pem, key: a-folder } }', ['2: server.tls.key: a-folder is a folder']],
    ['server: { tls: { cert: text, key: own.key } }', ['2: server.tls.cert: text holds no certificate']],
    ['server: { tls: { cert: own.key, key: own.key } }', ['2: server.tls.cert: own.key holds a private key']],
    ['server: { tls: { cert: own.pem, key: own.pem } }', ['2: server.tls.key: own.pem holds no private key']],
    [
      'server: { tls: { cert: own.pem, key: locked.key } }',
      ['2: server.tls.key: locked.key is a key with a passphrase'],
    ],
    [
      'server: { tls: { cert: own.pem, key: other.key } }',
      ['2: server.tls.key: other.key is not the key of'],
    ],
    [
      'server: { tls: { cert: reversed.pem, key: own.key } }',
      ['2: server.tls.cert: reversed.pem has its certificates in the wrong order'],
    ],
    [
      'server: { tls: { cert: stray.pem, key: own.key } }',
      ['2: server.tls.cert: stray.pem has its certificates in the wrong order: number 2 (CN=other)'],
    ],
    [
      'server: { tls: { cert: own.pem, key: own.key, clientCa: other.pem } }',
      ['2: server.tls.clientCa: other.pem holds a certificate that is no CA: CN=other'],
    ],
    ['server: { tls: { cert: own.der, key: own.key } }', ['2: server.tls.cert: own.der is DER, not PEM']],
    [
      'server: { tls: { cert: "-----BEGIN CERTIFICATE-----", key: own.key } }',
      ['2: server.tls.cert: holds PEM itself'],
    ],
    ['server: { tls: { cert: own.pem, key: own.key, ca: ca.pem } }', ['2: server.tls.ca: unknown key']],
  ])('refuses %s', (yaml, problems) => {
    expect(problemsOf(yaml)).toEqual(problems.map((start) => expect.stringContaining(start) as unknown))
  })

  it('takes a chain that ends in its root', () => {
    const chain = join(dir, 'chain.pem')
    writeFileSync(chain, authority.text(own.cert) + authority.text(authority.ca))
    expect(serverTlsFaults({ cert: chain, key: own.key })).toEqual([])
  })

  it('says how to write the key without its passphrase, which cannot be set', () => {
    expect(serverTlsFaults({ cert: own.cert, key: join(dir, 'locked.key') })[0]?.hint).toMatch(
      /^write the key without one: openssl pkey/,
    )
  })

  it('does not look at the files for commands that do not serve', () => {
    expect(problemsOf('server: { tls: { cert: none.pem, key: none.key } }', {})).toEqual([])
  })

  it.runIf(otherUserWorks)('tells of a key that this user may not read', () => {
    chmodSync(dir, 0o755)
    chmodSync(own.key, 0o600)
    const file = join(dir, 'for-other.yaml')
    writeFileSync(file, 'apiVersion: gantry/v1\nserver: { tls: { cert: own.pem, key: own.key } }\n')
    const load = `loadPipeline(${JSON.stringify(file)}, { toServe: true })`
    const fault = thrownForOther('config/load.js', load)
    if (process.getuid?.() !== 0) return expect(fault).toBeUndefined()
    expect(fault?.message).toMatch(/server\.tls\.key: .*own\.key may not be read by this user/)
  })
})

describe('validityFault', () => {
  const day = 24 * 3_600_000

  it('speaks of a certificate from 14 days before its end on', () => {
    const validity = { ...validityOf(authority.text(own.cert)), fromMs: 0 }
    const { untilMs } = validity
    expect(validity.subject).toBe('CN=own')
    expect(validityFault(validity, untilMs - 14 * day)).toBeUndefined()
    expect(validityFault(validity, untilMs - 14 * day + 1)).toMatch(
      /^the certificate of CN=own expires at .*Z, in 13 days$/,
    )
    expect(validityFault(validity, untilMs - 1.5 * day)).toMatch(/in 1 day$/)
    expect(validityFault(validity, untilMs)).toMatch(/^the certificate of CN=own expired at 20/)
    expect(validityFault(validity, -1)).toMatch(/is not valid before 1970/)
  })

  it('goes by the certificate of a chain that ends first', () => {
    const old = authority.issue('old', { expired: true })
    const text = authority.text(own.cert) + authority.text(old.cert)
    expect(validityOf(text).subject).toBe('CN=old')
  })
})
