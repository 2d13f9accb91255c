import { describe, expect, it } from 'vitest'
import { CameraLogin, loginFailure, type LoginMemory } from '../../src/sources/camera-login.js'
import { authorizationFields, digestResponse, hiddenUser } from '../support/digest-proof.js'

const login = (memory?: LoginMemory) => new CameraLogin('Mufasa', 'Circle of Life', memory)
const known = { user: Buffer.from('Mufasa'), password: Buffer.from('Circle of Life') }
const uri = 'rtsp://cam:554/s'

describe('the proof of a digest', () => {
  const fields = (given: Record<string, string>) =>
    new Map(Object.entries({ qop: 'auth', nc: '00000001', ...given }))

  // RFC 7616, 3.9.1.
  it.each([
    ['MD5', '8ca523f5e9506fed4657c9700eebdbec'],
    ['SHA-256', '753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1'],
  ])('is that of the RFC: %s', (algorithm, response) => {
    const given = fields({
      algorithm,
      realm: 'http-auth@example.org',
      nonce: '7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v',
      cnonce: 'f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ',
      uri: '/dir/index.html',
    })
    expect(digestResponse(given, known, 'GET')).toBe(response)
  })
})

describe('CameraLogin', () => {
  it('says nothing before it is asked, nor where a URL holds no login', () => {
    expect(login().answer('DESCRIBE', uri)).toBeUndefined()
    expect(CameraLogin.of(new URL('rtsp://cam/s'))).toBeUndefined()
  })

  it.each([
    ['rtsp://a%40b:p%3A%C3%BC@cam/s', 'a@b:p:ü'],
    ['rtsp://:secret@cam/s', ':secret'],
    ['rtsp://admin@cam/s', 'admin:'],
    ['rtsp://admin:100%@cam/s', 'admin:100%'],
    ['rtsp://admin:%zz%2@cam/s', 'admin:%zz%2'],
    ['rtsp://admin:p%25zz@cam/s', 'admin:p%zz'],
  ])('takes name and password of %s as they were meant', (url, meant) => {
    const own = CameraLogin.of(new URL(url))
    expect(own?.challenged(['Basic realm="x"'], false)).toBe(true)
    expect(own?.answer('OPTIONS', uri)).toBe(`Basic ${Buffer.from(meant).toString('base64')}`)
  })

  const algorithms = [
    '',
    'MD5',
    'md5',
    'MD5-sess',
    'SHA-256',
    'sha-256-SESS',
    'SHA-512-256',
    'SHA-512-256-sess',
  ]
  const qops = ['', 'auth', 'auth-int', 'auth,auth-int', 'auth-int, auth', 'token']
  const asked = algorithms.flatMap((algorithm) => qops.slice(0, 5).map((qop) => [algorithm, qop] as const))

  it.each(asked)('R65: answers Digest with algorithm "%s" and qop "%s"', (algorithm, qop) => {
    const own = login()
    const challenge = [
      'Digest realm="a, \\"b\\"", nonce="n+/=", opaque="o\\"p"',
      ...(algorithm === '' ? [] : [`algorithm=${algorithm}`]),
      ...(qop === '' ? [] : [`qop="${qop}"`]),
    ].join(', ')
    expect(own.challenged([challenge], false)).toBe(true)
    const body = Buffer.from('speed: 1\r\n')
    for (const [at, method] of ['OPTIONS', 'SET_PARAMETER'].entries()) {
      const answer = own.answer(method, uri, body) ?? ''
      const fields = authorizationFields(answer)
      expect(fields.get('response')).toBe(digestResponse(fields, known, method, body))
      expect(answer).toMatch(/^Digest username="Mufasa", realm="a, \\"b\\"", nonce="n\+\/="/)
      expect(answer).toContain('opaque="o\\"p"')
      expect(fields.get('uri')).toBe(uri)
      expect(fields.get('algorithm') ?? '').toBe(algorithm)
      expect(fields.get('qop') ?? '').toBe(qop === '' ? '' : qop === 'auth-int' ? 'auth-int' : 'auth')
      expect(fields.get('nc')).toBe(qop === '' ? undefined : `0000000${at + 1}`)
    }
  })

  it('R65: reckons the key of a session with one word of its own, first and later', () => {
    const own = login()
    own.challenged(['Digest realm="r", nonce="n", algorithm=MD5-sess, qop=auth'], false)
    const cnonces = ['SETUP', 'PLAY'].map((method) =>
      authorizationFields(own.answer(method, uri) ?? '').get('cnonce'),
    )
    expect(cnonces[0]).toMatch(/^[0-9a-f]{16}$/)
    expect(cnonces[1]).toBe(cnonces[0])
  })

  it('goes on with the nonce that an answer names, and counts its uses anew', () => {
    const own = login()
    own.challenged(['Digest realm="r", qop="auth", nonce="first"'], false)
    own.answer('GET', '/s')
    own.informed(['rspauth="x", cnonce="c", nc=00000001, qop=auth', 'nextnonce="second"'])
    expect(own.answer('GET', '/s')).toMatch(/nonce="second".* nc=00000001/)
    own.informed(['nc=00000001'])
    expect(own.answer('GET', '/s')).toMatch(/nonce="second".* nc=00000002/)
  })

  it.each([
    [['Basic realm="b"', 'Digest realm="d", nonce="n"'], /^Digest /],
    [['Basic realm="b", Digest realm="d", nonce="n"'], /^Digest /],
    [['Digest realm="d", nonce="n", algorithm=SHA-3', 'Basic realm="b"'], /^Basic /],
    [['Digest realm="d", nonce="n", qop="token"', 'Basic realm="b"'], /^Basic /],
    [['Digest realm="Basic area", nonce="n"'], /^Digest .*realm="Basic area"/],
    [
      ['Digest realm="d", nonce="m", algorithm=MD5', 'Digest realm="d", nonce="s", algorithm=SHA-256'],
      /nonce="s"/,
    ],
    [['Digest realm="d", nonce="s", algorithm=SHA-256, Digest realm="d", nonce="m"'], /nonce="s"/],
    [
      [
        'Digest realm="d", nonce="1", algorithm=SHA-256-sess',
        'Digest realm="d", nonce="2", algorithm=SHA-512-256',
        'Digest realm="d", nonce="3", algorithm=SHA-512',
        'Basic realm="d"',
        'Negotiate',
      ],
      /nonce="2"/,
    ],
    [['NTLM', 'basic Realm=b'], /^Basic /],
  ])('R65: of %j it takes the safest that it knows', (values, chosen) => {
    const own = login()
    expect(own.challenged(values, false)).toBe(true)
    expect(own.answer('DESCRIBE', uri)).toMatch(chosen)
  })

  it('R65: hides its name where the camera asks for that', () => {
    const own = login()
    own.challenged(['Digest realm="r", nonce="n", algorithm=SHA-256, userhash=true, qop=auth'], false)
    const fields = authorizationFields(own.answer('DESCRIBE', uri) ?? '')
    expect(fields.get('username')).toBe(hiddenUser('SHA-256', known.user, 'r'))
    expect(fields.get('userhash')).toBe('true')
    expect(fields.get('response')).toBe(digestResponse(fields, known, 'DESCRIBE'))
  })

  it('tries again after a refusal only where its answer had become stale', () => {
    const own = login()
    expect(own.challenged(['Digest realm="d", nonce="1"'], false)).toBe(true)
    expect(own.challenged(['Digest realm="d", nonce="2"'], true)).toBe(false)
    expect(own.challenged(['Digest realm="d", nonce="3", stale=TRUE'], true)).toBe(true)
    expect(own.answer('PLAY', uri)).toContain('nonce="3"')
    expect(own.challenged(['Negotiate'], false)).toBe(false)
  })

  it('R65: does not ask for ever a camera that calls every answer stale', () => {
    const own = login()
    const stale = ['Digest realm="d", nonce="1", stale=true']
    expect(own.challenged(stale, false)).toBe(true)
    const tries = [1, 2, 3, 4, 5].map(() => own.challenged(stale, true))
    expect(tries).toEqual([true, true, true, false, false])
  })

  it('R65: answers each time a camera that has taken the password and wants a new answer for every request', () => {
    const own = login()
    expect(own.challenged(['Digest realm="d", nonce="1"'], false)).toBe(true)
    for (const nonce of ['2', '3', '4', '5', '6']) {
      own.informed()
      expect(own.challenged([`Digest realm="d", nonce="${nonce}"`], true)).toBe(true)
      expect(own.answer('SETUP', uri)).toContain(`nonce="${nonce}"`)
    }
    expect(own.challenged(['Digest realm="d", nonce="7"'], true)).toBe(false)
  })

  it('R65: goes on with the nonce that a camera names for the next request', () => {
    const own = login()
    own.challenged(['Digest realm="d", nonce="1", qop=auth'], false)
    own.answer('SETUP', uri)
    own.informed(['qop=auth, nextnonce="a\\"b"'])
    const answer = own.answer('PLAY', uri) ?? ''
    expect(answer).toContain('nonce="a\\"b"')
    expect(answer).toContain('nc=00000001')
    const fields = authorizationFields(answer)
    expect(fields.get('response')).toBe(digestResponse(fields, known, 'PLAY'))
  })

  describe('with a name and a password beyond ASCII', () => {
    const [user, password] = ['Jäsøn', 'Grüße']
    const spelt = (charset: BufferEncoding) => ({
      user: Buffer.from(user, charset),
      password: Buffer.from(password, charset),
    })
    const proves = (answer: string | undefined, charset: BufferEncoding) => {
      const fields = authorizationFields(answer ?? '')
      expect(fields.get('username')).toBe(spelt(charset).user.toString('latin1'))
      expect(fields.get('response')).toBe(digestResponse(fields, spelt(charset), 'DESCRIBE'))
    }
    const challenge = ['Digest realm="K\xfcche \xe4", nonce="n"']

    it('R65: spells them in UTF-8, then once in latin1, and begins with what was taken', () => {
      const memory: LoginMemory = {}
      const first = new CameraLogin(user, password, memory)
      expect(first.challenged(challenge, false)).toBe(true)
      proves(first.answer('DESCRIBE', uri), 'utf8')
      expect(first.challenged(challenge, true)).toBe(true)
      proves(first.answer('DESCRIBE', uri), 'latin1')
      expect(first.challenged(challenge, true)).toBe(false)
      first.informed()
      const second = new CameraLogin(user, password, memory)
      second.challenged(challenge, false)
      proves(second.answer('DESCRIBE', uri), 'latin1')
    })

    it('R65: tries one of them at a time, in turn, once both were refused', () => {
      const memory: LoginMemory = {}
      const tries = (): number => {
        const own = new CameraLogin(user, password, memory)
        own.challenged(challenge, false)
        let count = 1
        while (own.challenged(challenge, true)) count += 1
        return count
      }
      expect(tries()).toBe(2)
      for (const charset of ['latin1', 'utf8', 'latin1'] as const) {
        expect(tries()).toBe(1)
        expect(memory.charset).toBe(charset)
      }
    })

    it.each([
      ['the camera says that it speaks UTF-8', [`${challenge[0]}, charset="UTF-8"`], user, password],
      ['latin1 has no such letters', challenge, user, 'пароль'],
      ['all is ASCII', challenge, 'admin', 'secret'],
    ])('R65: not where %s', (_, values, name, secret) => {
      const own = new CameraLogin(name, secret)
      expect(own.challenged(values, false)).toBe(true)
      expect(own.challenged(values, true)).toBe(false)
    })

    it('R65: as the bytes that a URL names', () => {
      const own = CameraLogin.of(new URL('rtsp://J%E4s%F8n:Gr%FC%DFe@cam/s'))
      own?.challenged(challenge, false)
      proves(own?.answer('DESCRIBE', uri), 'latin1')
      expect(own?.challenged(challenge, true)).toBe(false)
    })

    it('R65: in Basic too', () => {
      const own = new CameraLogin(user, password)
      const basic = (charset: BufferEncoding) =>
        `Basic ${Buffer.from(`${user}:${password}`, charset).toString('base64')}`
      own.challenged(['Basic realm="x"'], false)
      expect(own.answer('DESCRIBE', uri)).toBe(basic('utf8'))
      expect(own.challenged(['Basic realm="x"'], true)).toBe(true)
      expect(own.answer('DESCRIBE', uri)).toBe(basic('latin1'))
    })
  })
})

describe('a login that ends with 401', () => {
  const digest = 'Digest realm="d", nonce="n"'
  it.each([
    [login(), [digest], 'credentials refused (401)', 'login'],
    [login(), ['Basic realm="b"', 'NTLM'], 'credentials refused (401)', 'login'],
    [undefined, [digest], 'the camera wants a login (401): set username and password', 'slow'],
    [
      login(),
      ['NTLM'],
      'the camera wants NTLM, which Gantry does not speak (401): switch Digest or Basic on in its settings',
      'slow',
    ],
    [
      undefined,
      ['Negotiate, NTLM', 'Bearer realm="x"'],
      'the camera wants Negotiate or NTLM or Bearer, which Gantry does not speak (401): switch Digest or Basic on in its settings',
      'slow',
    ],
    [
      login(),
      [`${digest}, algorithm=SHA-3<x>`],
      'the camera wants Digest with SHA-3x, which Gantry does not speak (401): switch Digest or Basic on in its settings',
      'slow',
    ],
    [
      login(),
      [`${digest}, qop="conf"`],
      'the camera wants Digest with qop conf, which Gantry does not speak (401): switch Digest or Basic on in its settings',
      'slow',
    ],
    [
      new CameraLogin('a:b', 'c'),
      ['Basic realm="b"'],
      'the camera wants Basic (401), which has no ":" in a user name',
      'slow',
    ],
    [
      login(),
      [],
      'the camera refuses (401) and names no way to log in: its account may be locked for a while',
      'login',
    ],
  ] as const)('R65: %# is told as what it is', (own, values, reason, retry) => {
    expect(loginFailure(own, values)).toEqual({ reason, retry })
  })
})
