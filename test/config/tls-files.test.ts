import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readTlsFiles, type TlsDemands, type TlsPaths } from '../../src/config/tls-files.js'
import { type IssuedFiles, TestAuthority } from '../support/test-authority.js'

let authority: TestAuthority
let other: TestAuthority
let own: IssuedFiles
let locked: IssuedFiles
let folder: string

beforeAll(() => {
  authority = new TestAuthority()
  other = new TestAuthority('another')
  own = authority.issue('own')
  locked = authority.issue('locked', { passphrase: 'open sesame' })
  folder = authority.folder
})

afterAll(() => {
  authority.remove()
  other.remove()
})

function written(name: string, content: string | Buffer): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

/** `setting: message; hint` of each fault. */
function told(paths: TlsPaths, demands?: TlsDemands): string[] {
  return readTlsFiles(paths, demands).faults.map(({ setting, message, hint }) =>
    `${setting}: ${message}; ${hint}`.replaceAll(`${folder}/`, ''),
  )
}

describe('readTlsFiles', () => {
  it('gives what the files hold', () => {
    const { material, faults } = readTlsFiles({ ca: authority.ca, ...own })
    expect(faults).toEqual([])
    expect(material).toEqual({
      ca: readFileSync(authority.ca, 'utf8'),
      cert: readFileSync(own.cert, 'utf8'),
      key: readFileSync(own.key, 'utf8'),
    })
  })

  it('takes a key with its passphrase, a pair in one file, and a file with a byte order mark', () => {
    expect(told({ ...locked, passphrase: 'open sesame' })).toEqual([])
    const both = written('both.pem', readFileSync(own.cert, 'utf8') + readFileSync(own.key, 'utf8'))
    expect(told({ cert: both, key: both })).toEqual([])
    const marked = written('marked.pem', `\ufeff${readFileSync(authority.ca, 'utf8')}`)
    expect(readTlsFiles({ ca: marked })).toMatchObject({ faults: [], material: { ca: /^-----BEGIN/ } })
  })

  it('names the file that is not there, is a folder, is empty or may not be read', () => {
    mkdirSync(join(folder, 'a-folder'))
    expect(told({ ca: join(folder, 'none.pem') })).toEqual([
      expect.stringMatching(/^ca: none\.pem is not there; /),
    ])
    expect(told({ ca: join(folder, 'a-folder') })).toEqual([
      expect.stringMatching(/^ca: a-folder is a folder; /),
    ])
    expect(told({ ca: written('empty.pem', '') })).toEqual([
      expect.stringMatching(/^ca: empty\.pem is empty; /),
    ])
    const both = told({ cert: join(folder, 'a.pem'), key: join(folder, 'b.pem') })
    expect(both).toEqual([expect.stringMatching(/^cert: a\.pem/), expect.stringMatching(/^key: b\.pem/)])
  })

  it.each([
    ['text', () => 'hello', /^ca: odd holds no certificate in PEM; /],
    ['a key', () => readFileSync(own.key), /^ca: odd holds a private key and no certificate; /],
    [
      'UTF-16',
      () => Buffer.from(`\ufeff${readFileSync(authority.ca, 'utf8')}`, 'utf16le'),
      /^ca: odd: it is UTF-16/,
    ],
    [
      'a Java key store',
      () => Buffer.from('feedfeed0000000200000001', 'hex'),
      /^ca: odd is a Java key store, not PEM; /,
    ],
    [
      'damage',
      () => readFileSync(authority.ca, 'utf8').replace(/\nMI.{20}/, '\nMIIB'),
      /^ca: odd is damaged: its cert/,
    ],
    [
      'damage behind what is whole',
      () =>
        `${readFileSync(authority.ca, 'utf8')}-----BEGIN CERTIFICATE-----\nabcd\n-----END CERTIFICATE-----\n`,
      /^ca: odd is damaged: certificate 2 in it cannot be read; /,
    ],
  ])('tells %s from a certificate', (_, content, words) => {
    expect(told({ ca: written('odd', content()) })).toEqual([expect.stringMatching(words)])
  })

  it('tells DER and PKCS#12 from PEM, with the command that converts them', () => {
    authority.openssl('x509', '-in', own.cert, '-outform', 'der', '-out', join(folder, 'own.der'))
    expect(told({ ca: join(folder, 'own.der') })).toEqual([
      expect.stringMatching(/is DER, not PEM; convert it: openssl x509/),
    ])
    const bundle = [
      '-export',
      '-in',
      own.cert,
      '-inkey',
      own.key,
      '-passout',
      'pass:x',
      '-out',
      join(folder, 'own.p12'),
    ]
    authority.openssl('pkcs12', ...bundle)
    expect(told({ ca: join(folder, 'own.p12') })).toEqual([
      expect.stringMatching(/is PKCS#12 .*, not PEM; convert it: openssl pkcs12/),
    ])
  })

  it('wants a key beside a certificate, and the other way round', () => {
    expect(told({ cert: own.cert })).toEqual([expect.stringMatching(/^cert: has no key beside it; /)])
    expect(told({ key: own.key })).toEqual([expect.stringMatching(/^key: has no certificate beside it; /)])
    expect(told({ passphrase: 'x' })).toEqual([expect.stringMatching(/^passphrase: is for a key/)])
  })

  it('tells a key that is locked, a passphrase that does not open it, and never the passphrase', () => {
    expect(told(locked)).toEqual([
      expect.stringMatching(/^key: locked\.key is a key with a passphrase; set passphrase/),
    ])
    const wrong = told({ ...locked, passphrase: 'canary' })
    expect(wrong).toEqual([expect.stringMatching(/^passphrase: does not open the key locked\.key; /)])
    expect(wrong.join()).not.toContain('canary')
    const old = join(folder, 'old-style.key')
    authority.openssl('ec', '-in', own.key, '-aes128', '-passout', 'pass:abcd', '-out', old)
    expect(told({ cert: own.cert, key: old })).toEqual([
      expect.stringMatching(/old-style\.key is a key with a passphrase/),
    ])
    expect(told({ cert: own.cert, key: old, passphrase: 'abcd' })).toEqual([])
  })

  it('tells a key of another certificate from a chain in the wrong order', () => {
    expect(told({ cert: own.cert, key: other.issue('theirs').key })).toEqual([
      expect.stringMatching(/^key: .*theirs\.key is not the key of the certificate in own\.pem; /),
    ])
    const [leaf, issuer] = [readFileSync(own.cert, 'utf8'), readFileSync(authority.ca, 'utf8')]
    expect(told({ cert: written('chain.pem', leaf + issuer), key: own.key })).toEqual([])
    expect(told({ cert: written('reverse.pem', issuer + leaf), key: own.key })).toEqual([
      expect.stringMatching(
        /^cert: reverse\.pem has its certificates in the wrong order: .* number 2; put it first/,
      ),
    ])
  })

  it('wants a CA for clients where that is asked for', () => {
    expect(told({ ca: own.cert }, { caMaySign: true })).toEqual([
      expect.stringMatching(/^ca: own\.pem holds a certificate that is no CA: CN=own; /),
    ])
    expect(told({ ca: authority.ca }, { caMaySign: true })).toEqual([])
    expect(told({ ca: own.cert })).toEqual([])
  })

  it('tells what OpenSSL refuses beyond that', () => {
    const [cert, key] = [join(folder, 'short.pem'), join(folder, 'short.key')]
    const short = ['-newkey', 'rsa:1024', '-nodes', '-keyout', key, '-subj', '/CN=short', '-out', cert]
    authority.openssl('req', '-x509', '-days', '1', ...short)
    expect(told({ cert, key })).toEqual([
      expect.stringMatching(/^cert: short\.pem is refused by OpenSSL: .*too small/),
    ])
  })

  it('reads through links', () => {
    copyFileSync(authority.ca, join(folder, 'copy.pem'))
    expect(told({ ca: join(folder, 'copy.pem') })).toEqual([])
  })
})
