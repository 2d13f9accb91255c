import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { cameraSchema } from '../../src/config/camera.js'
import { AddressPolicy } from '../../src/lifecycle/address-policy.js'
import { ConnectGate } from '../../src/sources/connect-gate.js'
import { MainStream } from '../../src/sources/main-picture.js'
import { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { RtspLoginFront, type LoginFrontOptions } from '../support/rtsp-login-front.js'
import { makeClip, tempFolder } from '../support/video-clips.js'
import { WatchedSource } from '../support/watched-source.js'

const known = { user: Buffer.from('admin'), password: Buffer.from('p@ss#w:rd/?ü') }
const login = 'admin:p%40ss%23w%3Ard%2F%3F%C3%BC'
const digest = { scheme: 'Digest' }
type Options = Omit<LoginFrontOptions, 'known'>

describe('the login of an RTSP camera', () => {
  const server = new LoopingRtspServer()
  let folder: Awaited<ReturnType<typeof tempFolder>>
  let watched: WatchedSource | undefined
  let front: RtspLoginFront

  beforeAll(async () => {
    folder = await tempFolder()
    await server.start()
    await server.addStream('/cam', await makeClip(folder.file('clip.mp4')))
  })
  afterEach(async () => {
    await watched?.source.stop()
    await front.stop()
  })
  afterAll(async () => {
    await server.stop()
    await folder.remove()
  })

  async function open(options: Options & Partial<LoginFrontOptions>, as = login): Promise<WatchedSource> {
    front = await RtspLoginFront.start(server.port, { known, ...options })
    return (watched = await WatchedSource.start({ url: front.url('/cam', as) }))
  }

  const taken: readonly (readonly [string, Options])[] = [
    ['Basic', { offers: [{ scheme: 'Basic' }] }],
    ['basic, as the name of the scheme', { offers: [{ scheme: 'basic' }] }],
    ['Digest without algorithm and qop', { offers: [digest] }],
    ['digest with MD5', { offers: [{ scheme: 'digest', algorithm: 'md5', qop: 'auth' }] }],
    ['MD5-sess', { offers: [{ ...digest, algorithm: 'MD5-sess', qop: 'auth' }] }],
    ['MD5-sess without qop', { offers: [{ ...digest, algorithm: 'MD5-sess' }] }],
    ['SHA-256', { offers: [{ ...digest, algorithm: 'SHA-256', qop: 'auth' }] }],
    ['SHA-256 without qop', { offers: [{ ...digest, algorithm: '"SHA-256"' }] }],
    ['SHA-256-sess', { offers: [{ ...digest, algorithm: 'SHA-256-sess', qop: 'auth,auth-int' }] }],
    ['SHA-512-256', { offers: [{ ...digest, algorithm: 'SHA-512-256', qop: 'auth' }] }],
    ['SHA-512-256-sess', { offers: [{ ...digest, algorithm: 'SHA-512-256-sess', qop: 'auth' }] }],
    ['auth-int alone', { offers: [{ ...digest, qop: 'auth-int' }] }],
    [
      'SHA-256 with userhash',
      { offers: [{ ...digest, algorithm: 'SHA-256', qop: 'auth', extra: ', userhash=true' }] },
    ],
    ['opaque and a domain', { offers: [{ ...digest, extra: ', opaque="x\\"y", domain="/ /cam"' }] }],
    ['quoted commas in the realm', { offers: [{ ...digest, realm: 'Basic realm=a, nonce=b' }] }],
    ['a realm in latin1', { offers: [{ ...digest, realm: 'K\xfcche' }] }],
    ['a realm in UTF-8', { offers: [{ ...digest, realm: Buffer.from('Küche').toString('latin1') }] }],
    [
      'no quotes',
      { offers: [{ ...digest, written: 'Digest realm=IP Camera(1), nonce=<nonce>, stale=FALSE' }] },
    ],
    ['no commas', { offers: [{ ...digest, written: 'DIGEST REALM="a" NONCE="<nonce>" QOP=auth' }] }],
    [
      'SHA-256, MD5 and Basic, the strongest alone',
      {
        offers: [
          { scheme: 'Basic' },
          { ...digest, algorithm: 'MD5' },
          { ...digest, algorithm: 'SHA-256', qop: 'auth' },
        ],
        takes: 'SHA-256',
      },
    ],
    [
      'MD5, Basic and NTLM in one header',
      {
        offers: [{ scheme: 'NTLM' }, { scheme: 'Basic' }, { ...digest, algorithm: 'SHA-3' }, digest],
        takes: 'Digest',
        oneHeader: true,
      },
    ],
    ['a new nonce for each request', { offers: [{ ...digest, qop: 'auth' }], nonces: 'request' }],
    ['a nonce that is stale at the next request', { offers: [{ ...digest, qop: 'auth' }], nonces: 'stale' }],
    ['a nonce in each answer', { offers: [{ ...digest, qop: 'auth' }], nonces: 'next' }],
    ['SETUP and PLAY alone', { offers: [digest], methods: ['SETUP', 'PLAY'] }],
    ['PLAY alone', { offers: [{ ...digest, algorithm: 'SHA-256' }], methods: ['PLAY'] }],
  ]

  it.each(taken)('R65: is spoken by us: %s', async (_, options) => {
    const camera = await open(options)
    await camera.untilFrames(1)
    expect(front.wrong).toBe(0)
    expect(front.given.length).toBeGreaterThan(0)
    expect(camera.statuses.filter(({ state }) => state === 'backoff')).toEqual([])
  })

  it('R65: does not ask again for every request where the next nonce is named', async () => {
    const camera = await open({ offers: [{ ...digest, qop: 'auth' }], nonces: 'next' })
    await camera.untilFrames(1)
    expect(front.unasked).toBe(1)
  })

  it.each(['utf8', 'latin1'] as const)(
    'R65: spells what is beyond ASCII as the camera has it: %s',
    async (charset) => {
      const spelt = { user: Buffer.from('Jäger', charset), password: Buffer.from('Grüße', charset) }
      const camera = await open(
        { known: spelt, offers: [digest] },
        encodeURIComponent('Jäger') + ':' + encodeURIComponent('Grüße'),
      )
      await camera.untilFrames(1)
      expect(front.wrong).toBe(charset === 'utf8' ? 0 : 1)
      const tries = front.wrong
      server.cutAll()
      await camera.untilState('backoff')
      const had = camera.frames.length
      await camera.untilFrames(had + 1)
      expect(front.wrong).toBe(tries)
    },
  )

  const refused: readonly (readonly [string, Options, string, string | undefined, number])[] = [
    [
      'a wrong password',
      { offers: [{ ...digest, qop: 'auth' }] },
      'admin:wrong',
      'credentials refused (401)',
      1,
    ],
    [
      'a wrong password for Basic',
      { offers: [{ scheme: 'Basic' }] },
      'admin:wrong',
      'credentials refused (401)',
      1,
    ],
    [
      'a wrong password and a new nonce each time',
      { offers: [digest], nonces: 'request' },
      'admin:wrong',
      'credentials refused (401)',
      1,
    ],
    ['no password', { offers: [digest] }, '', 'the camera wants a login (401): set username and password', 0],
    [
      'NTLM',
      { offers: [{ scheme: 'NTLM' }] },
      login,
      'the camera wants NTLM, which Gantry does not speak (401): switch Digest or Basic on in its settings',
      0,
    ],
    [
      'Negotiate and Bearer',
      { offers: [{ scheme: 'Negotiate' }, { scheme: 'Bearer' }], oneHeader: true },
      login,
      'the camera wants Negotiate or Bearer, which Gantry does not speak (401): switch Digest or Basic on in its settings',
      0,
    ],
    [
      'a digest of another kind',
      { offers: [{ ...digest, algorithm: 'SHA-512' }] },
      login,
      'the camera wants Digest with SHA-512, which Gantry does not speak (401): switch Digest or Basic on in its settings',
      0,
    ],
    [
      'no way at all',
      { offers: [] },
      login,
      'the camera refuses (401) and names no way to log in: its account may be locked for a while',
      0,
    ],
    [
      'answers that are always stale',
      { offers: [digest], nonces: 'never' },
      login,
      'credentials refused (401)',
      0,
    ],
  ]

  it.each(refused)('R65: is told as what it is: %s', async (_, options, as, reason, wrong) => {
    const camera = await open(options, as)
    const status = await camera.untilState('backoff')
    expect(status.reason).toBe(reason)
    expect(front.wrong).toBe(wrong)
    expect(front.given.length).toBeLessThanOrEqual(4)
    if (reason === 'credentials refused (401)') expect(status.retryInMs).toBeGreaterThan(29_000)
  })

  it('R65: is not given to whom the camera redirects to', async () => {
    const camera = await open({
      offers: [digest],
      answers: (method) =>
        method === 'DESCRIBE' ? '302 Moved\r\nCSeq: CSEQ\r\nLocation: rtsp://192.0.2.9/x' : undefined,
    })
    const { reason } = await camera.untilState('backoff')
    expect(reason).toBe('the camera redirects to rtsp://192.0.2.9/x: name that address')
  })

  it.each([
    'rtsp://admin:p@ss#word@cam.example/x',
    'rtsp://admin:p@ss/word@192.0.2.10/x',
    'http://admin:p@ss?word@192.0.2.10/',
  ])('S14: no part of a login that would be cut is looked up: %s', async (url) => {
    const asked: string[] = []
    const lookUp = (host: string) => {
      asked.push(host)
      return Promise.resolve([])
    }
    front = await RtspLoginFront.start(server.port, { known, offers: [] })
    watched = await WatchedSource.start({ url }, { lookUp })
    const { reason } = await watched.untilState('failed')
    expect(reason).toContain('has a login that is not escaped and would be cut in the wrong place')
    expect(reason).not.toMatch(/ss|word/)
    expect(asked).toEqual([])
  })

  it('R65: stands beside the URL, for the main stream too', async () => {
    front = await RtspLoginFront.start(server.port, { known, offers: [{ ...digest, algorithm: 'SHA-256' }] })
    const settings = { username: 'admin', password: known.password.toString() }
    watched = await WatchedSource.start({ url: front.url('/cam'), ...settings })
    await watched.untilFrames(1)
    const camera = cameraSchema.parse({
      id: 'a',
      url: front.url('/cam'),
      analyseUrl: 'rtsp://h/x',
      ...settings,
    })
    const deps = { mediaRoot: folder.path, addresses: new AddressPolicy(), connectGate: new ConnectGate(1) }
    const main = new MainStream({ camera, deps, withinMs: 10_000 })
    expect((await main.take()).size).toEqual({ widthPx: 320, heightPx: 180 })
    main.close()
    expect(front.wrong).toBe(0)
  })
})
