import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import sharp from 'sharp'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { StreamMessage } from '../../clients/typescript/src/index.js'
import { selfSigned } from '../support/certificate.js'
import { freePort } from '../support/free-port.js'
import { RedService } from '../support/red-service.js'
import { streamReaders, type StreamReader } from '../support/stream-readers.js'
import { TcpProxy } from '../support/tcp-proxy.js'
import { until } from '../support/until.js'

const token = 'a-token-of-the-test'
const runOf = (cursor: string) => cursor.slice(0, cursor.lastIndexOf('-'))
const positionOf = (cursor: string) => Number(cursor.slice(cursor.lastIndexOf('-') + 1))

/** What a reader of every camera was not given, or twice, without being told by a gap. */
function untold(messages: readonly StreamMessage[]): readonly string[] {
  let last: string | undefined
  let isTold = false
  return messages.flatMap((message) => {
    if (message.type === 'gap') isTold = true
    if (message.type !== 'detections') return []
    const before = last
    last = message.cursor
    // Positions go on from one run of the service to the next.
    const follows = before === undefined || positionOf(message.cursor) === positionOf(before) + 1
    if (follows) return []
    const excused =
      isTold && (runOf(before) !== runOf(message.cursor) || positionOf(message.cursor) > positionOf(before))
    isTold = false
    return excused ? [] : [`${message.cursor} after ${before}`]
  })
}

let red: RedService
let proxy: TcpProxy
beforeAll(async () => {
  red = await RedService.start({ server: { token } })
  proxy = await TcpProxy.start(red.service.httpPort)
}, 90_000)
afterAll(async () => {
  await proxy?.stop()
  await red?.[Symbol.asyncDispose]()
})

it.each(streamReaders.filter(({ name }) => name !== 'a browser'))(
  'R121: $name trusts the issuer that it is told, and says what else is wrong',
  async ({ read }) => {
    const { keyFile, certificateFile, certificate } = selfSigned()
    const ca = certificate.toString()
    const tls = { cert: certificateFile, key: keyFile }
    await using secure = await RedService.start({ server: { tls, token }, trust: { ca } })
    const { url } = secure.service
    const trusting = read({ url, token, ca: certificateFile })
    const doubting = read({ url, token })
    await trusting.more()
    const doubts = () => doubting.states.flatMap(({ error }) => error ?? [])
    await until('the doubt', () => doubts().length > 0)
    expect(doubts()[0]).toMatchObject({
      code: 'GANTRY_CLIENT_UNREACHABLE',
      message: expect.stringMatching(/self[- ]signed certificate/) as string,
    })
    await trusting.close()
    await doubting.close()
  },
  90_000,
)

describe.each(streamReaders)('a stream that $name reads', ({ read }) => {
  const readers: StreamReader[] = []
  afterEach(async () => {
    proxy.fault = { kind: 'none' }
    for (const reader of readers.splice(0)) await reader.close()
  })

  /** Through the proxy, unless told otherwise. */
  function reader(options: Partial<Parameters<typeof read>[0]> = {}): StreamReader {
    const opened = read({ url: `http://127.0.0.1:${proxy.port}`, token, ...options })
    readers.push(opened)
    return opened
  }

  it('brings what is found, of the cameras, labels and scores that are wanted, with its pictures', async () => {
    const [all, no, other, pictures] = [
      reader(),
      reader({ labels: ['blue'] }),
      reader({ cameras: ['elsewhere'] }),
      reader({ minScore: 0.5, frames: true }),
    ]
    await Promise.all([all.more(), no.more(), pictures.more()])
    const found = (from: StreamReader) =>
      from.messages.flatMap((message) => (message.type === 'detections' ? message.detections : []))
    expect(found(all)[0]).toMatchObject({ label: 'red', boxPx: { x1: expect.any(Number) as number } })
    expect([found(no), other.messages]).toEqual([[], []])
    // The first results come before the engine knows that somebody wants pictures.
    const first = () => pictures.messages.findIndex(({ type }) => type === 'picture')
    await until('a picture and its result', () => first() >= 0 && pictures.messages[first() + 1])
    const [picture, result] = pictures.messages.slice(first())
    if (picture?.type !== 'picture' || result?.type !== 'detections') throw new Error('no picture came first')
    expect([picture.header.cameraId, picture.header.seq]).toEqual([result.cameraId, result.seq])
    const { width, height } = await sharp(picture.jpeg).metadata()
    expect([width, height]).toEqual([picture.header.widthPx, picture.header.heightPx])
    other.subscribe({ cameras: ['yard'] })
    await other.more()
  })

  it('R120: has each result once, across connections that are cut', async () => {
    const cut = reader()
    for (let times = 0; times < 3; times += 1) {
      await cut.more()
      proxy.fault = { kind: 'reset' }
      await until('it notices', () => cut.state === 'waiting')
      proxy.fault = { kind: 'none' }
    }
    await cut.more(20)
    expect([untold(cut.messages), cut.gaps]).toEqual([[], 0])
  }, 60_000)

  it('R120: has each result once, where the line is lost without a word', async () => {
    const lost = reader()
    await lost.more()
    proxy.lose(() => true)
    await until('it notices', () => lost.states.some(({ trouble }) => trouble === 'silent'), 30_000)
    await lost.more(40)
    expect([untold(lost.messages), lost.gaps]).toEqual([[], 0])
  }, 90_000)

  it('R120: goes on where another run of the same program stopped', async () => {
    const first = reader()
    await first.more()
    await first.close()
    const second = reader({ resumeAfter: first.cursors.at(-1)! })
    await second.more()
    expect(untold([...first.messages, ...second.messages])).toEqual([])
  })

  it('R120: has each result once, when the process of the viewers is killed and the service starts anew', async () => {
    const told = reader({ url: red.service.url })
    await told.more()
    process.kill((await red.service.ready()).stream.pid ?? 0, 'SIGKILL')
    await until('it notices', () => told.state !== 'open')
    await told.more()
    await red.restart()
    await told.more(30)
    expect([untold(told.messages), told.gaps]).toEqual([[], 0])
    expect([told.failed, told.hasEnded]).toEqual([undefined, false])
  }, 120_000)

  it.each([
    ['a wrong token', () => ({ token: 'another' }), 'GANTRY_UNAUTHORIZED', 401],
    ['no token', () => ({ token: '' }), 'GANTRY_UNAUTHORIZED', 401],
    ['a path that is none', () => ({ url: `${red.service.url}/gantry` }), 'GANTRY_NOT_FOUND', 404],
    ['a score that is none', () => ({ minScore: 2 }), 'GANTRY_WS_MESSAGE', undefined],
  ])('R121: ends with %s, and says why', async (_, options, code, status) => {
    const refused = reader(options())
    await until('its end', () => refused.hasEnded, 20_000)
    expect(refused.failed).toMatchObject({ code, hint: expect.stringMatching(/\w/) as string })
    expect(refused.failed?.status ?? undefined).toBe(status)
    expect(refused.state).toBe('closed')
  })

  it('R121: ends where somebody else answers', async () => {
    const other = createServer((_, response) => response.writeHead(404).end('<h1>Not here</h1>'))
    other.on('upgrade', (_, socket) => socket.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n'))
    other.listen(0, '127.0.0.1')
    await once(other, 'listening')
    const refused = reader({ url: `http://127.0.0.1:${(other.address() as AddressInfo).port}` })
    await until('its end', () => refused.hasEnded, 20_000)
    other.close()
    expect(refused.failed).toMatchObject({ code: 'GANTRY_CLIENT_ADDRESS' })
  })

  it('R121: waits for a service that does not answer yet, or lets nobody in for a while', async () => {
    const port = await freePort()
    const early = reader({ url: `http://127.0.0.1:${port}` })
    await until('the second try', () => early.states.filter(({ state }) => state === 'waiting').length >= 2)
    const late = await TcpProxy.start(red.service.httpPort, port)
    await early.more()
    await early.close()
    await late.stop()
  }, 60_000)

  it('R122: pauses for a reader that is behind, and goes on without a hole', async () => {
    const slow = reader({ maxWaiting: 10 })
    await slow.more()
    slow.hold()
    await until('it pauses', () => slow.state === 'paused', 30_000)
    const before = slow.cursors.length
    const frames = async () => (await red.service.camera('yard')).stats.frames.received
    const then = await frames()
    await until('frames that it misses', async () => (await frames()) >= then + 20, 30_000)
    expect((await red.service.ready()).stream.clients).toBe(0)
    expect(slow.cursors.length).toBeLessThanOrEqual(before + 1)
    slow.go()
    await slow.more(30)
    expect([untold(slow.messages), slow.gaps]).toEqual([[], 0])
  }, 60_000)

  it('ends at once when it is closed, whatever the line is', async () => {
    const closed = reader()
    await closed.more()
    proxy.fault = { kind: 'black_hole' }
    const beganMs = performance.now()
    await closed.close()
    expect([closed.hasEnded, closed.failed]).toEqual([true, undefined])
    // A line that is lost is found after five seconds at the earliest.
    expect(performance.now() - beganMs).toBeLessThan(5_000)
  })
})
