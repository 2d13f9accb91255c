import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { nowMs } from '../../src/lifecycle/clock.js'
import { alive } from '../support/processes.js'
import { TestService, type TestStream } from '../support/service.js'
import { until } from '../support/until.js'

/** Bound of failure mode R10, which is an engine's; the process of the viewers has less to load. */
const backWithinMs = 3_000

describe('the process that serves viewers', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-stream-'))
  let service: TestService

  beforeAll(async () => {
    // The same picture again and again needs no inference.
    await sharp({ create: { width: 64, height: 48, channels: 3, background: 'gray' } })
      .png()
      .toFile(join(folder, 'grey.png'))
    service = await TestService.start({
      server: { maxStreamClients: 4 },
      pipeline: {
        mediaRoot: folder,
        cameras: [{ id: 'still', url: folder, sampleFps: 10, staticScene: { maxAgeMs: 60_000 } }],
      },
    })
    await service.cameraIs('still', 'live')
  }, 90_000)

  afterAll(async () => {
    await service?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  const pid = async () => (await service.ready()).stream.pid ?? 0
  const results = async () => (await service.camera('still')).stats.frames.received
  const nobody = () =>
    until('no viewer left', async () => (await service.ready()).stream.clients === 0, 5_000, 5)

  async function cursorOf(stream: TestStream): Promise<string> {
    const message = await stream.next(({ type }) => type === 'detections')
    return message.type === 'detections' ? message.cursor : ''
  }

  async function reopened(resumeAfter?: string): Promise<TestStream> {
    return until(
      'the stream again',
      () => service.stream(resumeAfter === undefined ? {} : { resumeAfter }).catch(() => undefined),
      backWithinMs,
      20,
    )
  }

  it('keeps what comes while nobody is connected, for who comes back', async () => {
    const stream = await service.stream()
    const cursor = await cursorOf(stream)
    stream.close()
    await nobody()
    const before = await results()
    // More than one message of results that nobody waits for.
    await until('results nobody sees', async () => (await results()) - before >= 50, 30_000)
    const again = await service.stream({ resumeAfter: cursor })
    const position = (text: string) => Number(text.split('-').at(-1))
    const next = position(cursor) + 1
    await until(
      'what was missed',
      () => again.messages.filter(({ type }) => type === 'detections').length > 50,
    )
    const positions = again.messages.flatMap((message) =>
      message.type === 'detections' ? [position(message.cursor)] : [],
    )
    expect(positions).toEqual(positions.map((_, index) => next + index))
    expect(again.messages.map(({ type }) => type)).not.toContain('gap')
    again.close()
    await nobody()
  })

  it('R10: is started again after it was killed; viewers are back within 3 s, and the cameras notice nothing', async () => {
    const stream = await service.stream()
    const cursor = await cursorOf(stream)
    const killed = await pid()
    const closed = once(stream.socket, 'close')
    const before = await service.camera('still')
    process.kill(killed, 'SIGKILL')
    const atMs = nowMs()
    await closed
    const again = await reopened(cursor)
    const tookMs = nowMs() - atMs
    expect(await cursorOf(again)).not.toBe(cursor)
    expect(tookMs).toBeLessThan(backWithinMs)
    // What it kept is gone with it, and comes from the store.
    const position = (text: string) => Number(text.split('-').at(-1))
    const messages = again.messages.filter(({ type }) => type === 'detections' || type === 'gap')
    expect(messages[0]).toMatchObject({ type: 'detections' })
    expect(messages[0]?.type === 'detections' && position(messages[0].cursor)).toBe(position(cursor) + 1)
    expect(await service.ready()).toMatchObject({ ready: true, stream: { state: 'ready', restarts: 1 } })
    expect(await pid()).not.toBe(killed)
    const after = await service.camera('still')
    expect(after.status).toEqual(before.status)
    expect(after.stats.frames.lost).toBe(before.stats.frames.lost)
    expect(await service.metric(/gantry_stream_restarts_total/)).toBe(1)
    again.close()
    await nobody()
  })

  it('while it hangs holds up nothing, and is killed and started again', { timeout: 60_000 }, async () => {
    const stream = await service.stream()
    const closed = once(stream.socket, 'close')
    const hung = await pid()
    process.kill(hung, 'SIGSTOP')
    const before = await results()
    await until('results without viewers', async () => (await results()) - before >= 20, 10_000)
    await until('the end of the hung one', () => !alive(hung), 20_000)
    await closed
    const again = await reopened()
    await cursorOf(again)
    again.close()
    await nobody()
  })

  it('takes as many viewers as configured', async () => {
    const streams = await Promise.all([1, 2, 3, 4].map(() => service.stream()))
    expect((await service.ready()).stream.clients).toBe(4)
    await expect(service.stream()).rejects.toThrow(/503/)
    expect(await service.metric(/gantry_stream_clients/)).toBe(4)
    for (const stream of streams) stream.close()
    await nobody()
    ;(await service.stream()).close()
    await nobody()
  })

  it('takes a viewer over a connection on which something else was asked before', async () => {
    const socket = connect(service.httpPort, '127.0.0.1')
    let seen = ''
    socket.on('data', (data: Buffer) => (seen += data.toString('latin1')))
    socket.write('GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
    await until('the first answer', () => seen.includes('"ok"'))
    socket.write(
      'GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
        'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n' +
        'Sec-WebSocket-Protocol: gantry.v1\r\n\r\n',
    )
    await until('the greeting', () => seen.includes('101 Switching') && seen.includes('"hello"'))
    socket.destroy()
    await nobody()
  })

  it('is not offered with another method than GET', async () => {
    const headers = {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      'sec-websocket-protocol': 'gantry.v1',
    }
    const asked = request(`${service.url}/api/v1/stream`, { method: 'POST', headers, agent: false }).end()
    const [response] = (await once(asked, 'response')) as [{ statusCode: number; destroy(): void }]
    expect(response.statusCode).toBe(405)
    response.destroy()
  })

  it('closes its viewers with 1001 and ends when the service stops', async () => {
    const stream = await service.stream()
    const served = await pid()
    const closed = once(stream.socket, 'close')
    await service.end()
    expect(((await closed) as [number])[0]).toBe(1001)
    expect(alive(served)).toBe(false)
  })
})
