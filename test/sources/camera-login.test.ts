import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { CameraLogin } from '../../src/sources/camera-login.js'

const hash = (algorithm: string, text: string) => createHash(algorithm).update(text).digest('hex')
const login = () => new CameraLogin('Mufasa', 'Circle of Life')
const uri = 'rtsp://cam:554/s'

describe('CameraLogin', () => {
  it('says nothing before it is asked, nor where a URL holds no login', () => {
    expect(login().answer('DESCRIBE', uri)).toBeUndefined()
    expect(CameraLogin.of(new URL('rtsp://cam/s'))).toBeUndefined()
  })

  it('takes name and password of a URL as they were meant', () => {
    const own = CameraLogin.of(new URL('rtsp://a%40b:p%3A%C3%BC@cam/s'))
    expect(own?.challenged(['Basic realm="x"'], false)).toBe(true)
    expect(own?.answer('OPTIONS', uri)).toBe(`Basic ${Buffer.from('a@b:p:ü').toString('base64')}`)
  })

  it.each([
    ['MD5', 'md5', ''],
    ['md5', 'md5', ', algorithm=md5'],
    ['SHA-256', 'sha256', ', algorithm="SHA-256"'],
  ])('answers a digest without qop: %s', (_, algorithm, field) => {
    const own = login()
    expect(own.challenged([`Digest realm="a, b", nonce="n"${field}`], false)).toBe(true)
    const secret = hash(algorithm, 'Mufasa:a, b:Circle of Life')
    const expected = hash(algorithm, `${secret}:n:${hash(algorithm, `DESCRIBE:${uri}`)}`)
    expect(own.answer('DESCRIBE', uri)).toContain(
      `realm="a, b", nonce="n", uri="${uri}", response="${expected}"`,
    )
  })

  it('answers as RFC 7616 shows it, counting its uses', () => {
    const own = new CameraLogin('Mufasa', 'Circle of Life')
    own.challenged(
      ['Digest realm="r", qop="auth, auth-int", algorithm=SHA-256-sess, nonce="n", opaque="o\\"p"'],
      false,
    )
    own.answer('OPTIONS', uri)
    const answer = own.answer('SETUP', uri) ?? ''
    const cnonce = /cnonce="([0-9a-f]+)"/.exec(answer)?.[1] ?? ''
    const secret = hash('sha256', `${hash('sha256', 'Mufasa:r:Circle of Life')}:n:${cnonce}`)
    const action = hash('sha256', `SETUP:${uri}`)
    expect(answer).toContain(`response="${hash('sha256', `${secret}:n:00000002:${cnonce}:auth:${action}`)}"`)
    expect(answer).toContain('qop=auth, nc=00000002')
    expect(answer).toContain('opaque="o\\"p"')
  })

  it.each([
    [['Basic realm="b"', 'Digest realm="d", nonce="n"'], /^Digest /],
    [['Basic realm="b", Digest realm="d", nonce="n"'], /^Digest /],
    [['Digest realm="d", nonce="n", algorithm=SHA-512-256', 'Basic realm="b"'], /^Basic /],
    [['Digest realm="Basic area", nonce="n"'], /^Digest .*realm="Basic area"/],
  ])('of %j it takes the safest that it knows', (values, chosen) => {
    const own = login()
    expect(own.challenged(values, false)).toBe(true)
    expect(own.answer('DESCRIBE', uri)).toMatch(chosen)
  })

  it('tries again after a refusal only where its answer had become stale', () => {
    const own = login()
    expect(own.challenged(['Digest realm="d", nonce="1"'], false)).toBe(true)
    expect(own.challenged(['Digest realm="d", nonce="2"'], true)).toBe(false)
    expect(own.challenged(['Digest realm="d", nonce="3", stale=TRUE'], true)).toBe(true)
    expect(own.answer('PLAY', uri)).toContain('nonce="3"')
    expect(own.challenged(['Negotiate'], false)).toBe(false)
  })
})
