import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { authorizationFields, digestResponse } from '../support/digest-proof.js'
import { childrenOf } from '../support/processes.js'
import { ffmpegRun, makeClip, makePlayList, tempFolder } from '../support/video-clips.js'
import { WatchedSource } from '../support/watched-source.js'

const known = { user: Buffer.from('jäger'), password: Buffer.from('c4n@ry#ü') }
const password = known.password.toString()
const username = known.user.toString()

type Demand = Readonly<{
  challenges: readonly string[]
  /** A nonce is good for one request, and called stale then. */
  once?: boolean
}>

describe('the login of an HTTP camera', () => {
  let folder: Awaited<ReturnType<typeof tempFolder>>
  let server: Server
  let base: string
  let watched: WatchedSource | undefined
  let demand: Demand = { challenges: [] }
  let nonce = 0
  let refused = 0

  beforeAll(async () => {
    folder = await tempFolder()
    const clip = await makeClip(folder.file('clip.mp4'), { seconds: 4 })
    await makePlayList(clip, folder.file('list.m3u8'))
    await ffmpegRun('-i', clip, '-c', 'copy', '-movflags', '+faststart', folder.file('fast.mp4'))
    server = createServer((request, response) => {
      const header = request.headers.authorization
      if (header === undefined || !isRight(header, request.method ?? '', request.url ?? '')) {
        const fields = authorizationFields(header ?? '')
        const isOld = header !== undefined && fields.get('nonce') !== `n${nonce}`
        if (header !== undefined && !isOld) refused += 1
        const stale = isOld ? ', stale=true' : ''
        const values = demand.challenges.map((value) => value.replace('<nonce>', `"n${nonce}"${stale}`))
        return void response.writeHead(401, { 'www-authenticate': values }).end('<html>log in</html>')
      }
      if (demand.once === true) nonce += 1
      readFile(folder.file((request.url ?? '').slice(1))).then(
        (bytes) => response.end(bytes),
        () => response.writeHead(404).end(),
      )
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterEach(async () => {
    await watched?.source.stop()
    refused = 0
  })
  afterAll(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    await folder.remove()
  })

  function isRight(header: string, method: string, url: string): boolean {
    if (header.startsWith('Basic '))
      return Buffer.from(header.slice(6), 'base64').toString() === `${username}:${password}`
    const fields = authorizationFields(header)
    return (
      fields.get('username') === known.user.toString('latin1') &&
      fields.get('uri') === url &&
      fields.get('nonce') === `n${nonce}` &&
      fields.get('response') === digestResponse(fields, known, method)
    )
  }

  async function open(path: string, asked: Demand, secret = password): Promise<WatchedSource> {
    demand = asked
    return (watched = await WatchedSource.start({ url: `${base}${path}`, username, password: secret }))
  }

  const digest = 'Digest realm="K\xfcche, 1", nonce=<nonce>'
  it.each([
    ['Basic', '/fast.mp4', { challenges: ['Basic realm="x"'] }],
    ['Digest', '/fast.mp4', { challenges: [digest] }],
    ['MD5-sess', '/fast.mp4', { challenges: [`${digest}, algorithm=MD5-sess, qop="auth"`] }],
    ['SHA-256', '/fast.mp4', { challenges: [`${digest}, algorithm=SHA-256, qop="auth"`] }],
    [
      'SHA-512-256, MD5 and Basic',
      '/fast.mp4',
      { challenges: ['Basic realm="x"', digest, `${digest}, algorithm=SHA-512-256`] },
    ],
    ['auth-int alone', '/fast.mp4', { challenges: [`${digest}, qop="auth-int"`] }],
    [
      'SHA-256 for a play list and its pieces',
      '/list.m3u8',
      { challenges: [`${digest}, algorithm=SHA-256, qop="auth"`] },
    ],
    [
      'a nonce for one request, for a play list and its pieces',
      '/list.m3u8',
      { challenges: [`${digest}, qop="auth"`], once: true },
    ],
  ] as const)('R65: is spoken by us: %s', async (_, path, asked) => {
    const camera = await open(path, asked)
    await camera.untilFrames(1, 15_000)
    expect(refused).toBe(0)
    for (const { pid } of childrenOf(process.pid, 'ffmpeg'))
      expect(readFileSync(`/proc/${pid}/cmdline`, 'latin1')).not.toMatch(/c4n|ry%23|j%C3|authorization/i)
  })

  it.each([
    [{ challenges: [`${digest}, qop="auth"`] }, 'credentials refused (401)'],
    [
      { challenges: ['NTLM', 'Negotiate'] },
      'the camera wants NTLM or Negotiate, which Gantry does not speak (401): switch Digest or Basic on in its settings',
    ],
  ])('R65: is told as what it is: %j', async (asked, reason) => {
    const camera = await open('/fast.mp4', asked, 'secret')
    const status = await camera.untilState('backoff', 15_000)
    expect(status.reason).toBe(reason)
    // The name may be spelt in two ways.
    expect(refused).toBeLessThanOrEqual(2)
  })
})
