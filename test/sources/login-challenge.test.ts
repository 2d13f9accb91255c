import { describe, expect, it } from 'vitest'
import { challengesIn } from '../../src/sources/login-challenge.js'

const read = (value: string) =>
  challengesIn(value).map(({ scheme, fields }) => [
    scheme,
    Object.fromEntries([...fields].map(([name, field]) => [name, field.value])),
  ])

describe('challenges of a camera', () => {
  it.each([
    ['Basic realm="a"', [['basic', { realm: 'a' }]]],
    ['basic', [['basic', {}]]],
    ['NTLM', [['ntlm', {}]]],
    [
      'Negotiate YIIabc==, NTLM',
      [
        ['negotiate', {}],
        ['ntlm', {}],
      ],
    ],
    [
      'Digest realm="d", nonce="n", qop="auth,auth-int", Basic realm="b"',
      [
        ['digest', { realm: 'd', nonce: 'n', qop: 'auth,auth-int' }],
        ['basic', { realm: 'b' }],
      ],
    ],
    // A name of a scheme, a comma or a parameter inside of quotes is text.
    ['Digest realm="a, Basic realm=x", nonce="n"', [['digest', { realm: 'a, Basic realm=x', nonce: 'n' }]]],
    ['DIGEST REALM="a" , NONCE="n"', [['digest', { realm: 'a', nonce: 'n' }]]],
    // Quotes, commas and their ends as cameras leave them out.
    [
      'Digest realm=IP Camera(12345), nonce=abc, stale=FALSE',
      [['digest', { realm: 'IP Camera(12345)', nonce: 'abc', stale: 'FALSE' }]],
    ],
    ['Digest realm="a" nonce="n" algorithm=MD5', [['digest', { realm: 'a', nonce: 'n', algorithm: 'MD5' }]]],
    ['Digest realm="a; b"; nonce="n"', [['digest', { realm: 'a; b', nonce: 'n' }]]],
    ['Digest realm="a, nonce="n"', [['digest', { realm: 'a', nonce: 'n' }]]],
    ['Digest realm="a", nonce="n', [['digest', { realm: 'a', nonce: 'n' }]]],
    ['Digest realm="My "Cam"", nonce="n"', [['digest', { realm: 'My "Cam"', nonce: 'n' }]]],
    ['Digest realm="a\\"b\\\\c", nonce="n"', [['digest', { realm: 'a"b\\c', nonce: 'n' }]]],
    ['Digest realm="DOMAIN\\cam", nonce="n"', [['digest', { realm: 'DOMAIN\\cam', nonce: 'n' }]]],
    ['Digest realm="", nonce="", qop=""', [['digest', { realm: '', nonce: '', qop: '' }]]],
    ['Digest nonce="ab==", opaque="", realm = "x"', [['digest', { nonce: 'ab==', opaque: '', realm: 'x' }]]],
    [',, Basic realm="a",', [['basic', { realm: 'a' }]]],
    ['', []],
    ['realm="a", nonce="n"', []],
  ])('%s', (value, found) => {
    expect(read(value)).toEqual(found)
  })

  it('keeps what stood between the quotes', () => {
    const [challenge] = challengesIn('Digest realm="a\\"b", nonce=n\\x')
    expect(challenge?.fields.get('realm')).toEqual({ value: 'a"b', written: 'a\\"b' })
    expect(challenge?.fields.get('nonce')).toEqual({ value: 'n\\x', written: 'n\\\\x' })
  })

  it('comes to an end with any text', () => {
    for (const text of [
      '"'.repeat(4000),
      'a="'.repeat(2000),
      'Digest ' + 'a=b '.repeat(2000),
      '\\"'.repeat(4000),
    ])
      expect(challengesIn(text)).toBeInstanceOf(Array)
  })
})
