import { once } from 'node:events'
import { type ClientHttp2Session, connect, constants } from 'node:http2'
import { connect as connectTcp, createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { PingStrikes } from '../../../src/api/grpc/client-pings.js'
import { startGrpc, type GrpcServer } from '../../../src/api/grpc/grpc-server.js'
import { grpcConnectionsSchema } from '../../../src/config/grpc-connections.js'
import { FakeModelServer } from '../../support/fake-model-server.js'
import { GrpcClient } from '../../support/grpc-client.js'
import { silentLog } from '../../support/silent-log.js'
import { runClient, tritonClients } from '../../support/triton-clients.js'

const models = { plain: { datatype: 'FP32', shape: [-1, 4] } } as const

const plain = {
  model_name: 'plain',
  inputs: [{ name: 'IN', datatype: 'FP32', shape: [1, 4] }],
  raw_input_contents: [Buffer.alloc(16)],
}

type Connections = Parameters<typeof grpcConnectionsSchema.parse>[0]

/** A server with these rules, on a port of its own or given connections, and where clients reach it. */
async function served(
  how: 'its own port' | 'given connections',
  connections: Connections,
): Promise<{ grpc: GrpcServer; port: number; server: FakeModelServer }> {
  const server = new FakeModelServer(models)
  const isOwn = how === 'its own port'
  const grpc = await startGrpc(server, {
    host: '127.0.0.1',
    port: isOwn ? 0 : undefined,
    connections: grpcConnectionsSchema.parse(connections),
    log: silentLog(),
  })
  onTestFinished(() => grpc.stop(0))
  if (isOwn) return { grpc, port: grpc.port, server }
  const door = createServer((socket) => grpc.adopt(socket)).listen(0, '127.0.0.1')
  onTestFinished(() => void door.close())
  await once(door, 'listening')
  return { grpc, port: (door.address() as AddressInfo).port, server }
}

async function http2To(port: number): Promise<ClientHttp2Session> {
  const session = connect(`http://127.0.0.1:${port}`)
  onTestFinished(() => session.destroy())
  session.on('error', () => undefined)
  await once(session, 'connect')
  return session
}

function ping(session: ClientHttp2Session): Promise<void> {
  return new Promise((resolve, reject) => {
    session.ping((error) => (error === null ? resolve() : reject(error)))
  })
}

type GoAway = Readonly<{ code: number; said: string }>

function goAway(session: ClientHttp2Session): Promise<GoAway> {
  return new Promise((resolve) => {
    session.once('goaway', (code: number, _: number, said?: Buffer) => {
      resolve({ code, said: said?.toString() ?? '' })
    })
  })
}

const ways = ['its own port', 'given connections'] as const

describe.each(ways)('connections of gRPC clients, %s', (how) => {
  it('may be pinged as often as a client likes, unless the settings say otherwise', async () => {
    const { port } = await served(how, {})
    const session = await http2To(port)
    for (let count = 0; count < 20; count++) await ping(session)
    expect(session.destroyed).toBe(false)
  })

  it('end for a client that pings too often, and say why', async () => {
    const { port } = await served(how, { maxPingStrikes: 2, minPingIntervalMs: 60_000 })
    const session = await http2To(port)
    const told = goAway(session)
    const closed = new Promise((resolve) => session.once('close', resolve))
    for (let count = 0; count < 3; count++) await ping(session)
    expect(session.destroyed).toBe(false)
    void ping(session).catch(() => undefined)
    expect(await told).toEqual({ code: constants.NGHTTP2_ENHANCE_YOUR_CALM, said: 'too_many_pings' })
    await closed
  })

  it('do not count pings between which something was sent', async () => {
    const { port } = await served(how, { maxPingStrikes: 1, minPingIntervalMs: 60_000 })
    const session = await http2To(port)
    for (let count = 0; count < 4; count++) {
      await ping(session)
      const call = session.request({
        ':method': 'POST',
        ':path': '/inference.GRPCInferenceService/ServerLive',
        'content-type': 'application/grpc',
        te: 'trailers',
      })
      call.end(Buffer.alloc(5))
      call.resume()
      await once(call, 'close')
      await ping(session)
    }
    expect(session.destroyed).toBe(false)
  })

  it('ask a client that is silent, and are cut when it does not answer', async () => {
    const { port } = await served(how, { keepaliveTimeMs: 100, keepaliveTimeoutMs: 200 })
    const frozen = connectTcp(port, '127.0.0.1')
    onTestFinished(() => void frozen.destroy())
    frozen.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
    // Settings without a value; pings are left without an answer.
    frozen.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]))
    frozen.on('error', () => undefined)
    frozen.resume()
    await once(frozen, 'close')
  })

  it.each([
    [true, true],
    [false, false],
  ])('are asked without a call where keepaliveWithoutCalls is %s', async (keepaliveWithoutCalls, asked) => {
    const { port } = await served(how, { keepaliveTimeMs: 100, keepaliveWithoutCalls })
    const session = await http2To(port)
    let pings = 0
    session.on('ping', () => (pings += 1))
    // Two clients of the server's timer: by the second one's age the first has been asked, or will not be.
    const other = await http2To(port)
    const call = other.request({
      ':method': 'POST',
      ':path': '/inference.GRPCInferenceService/ModelStreamInfer',
      'content-type': 'application/grpc',
      te: 'trailers',
    })
    call.on('error', () => undefined)
    let rounds = 0
    other.on('ping', () => (rounds += 1))
    await expect.poll(() => rounds, { timeout: 10_000 }).toBeGreaterThan(2)
    expect(pings > 0).toBe(asked)
    expect(session.destroyed).toBe(false)
  })

  it('end at their age: calls under way go on, a new one takes a new connection', async () => {
    const { port, server } = await served(how, { maxConnectionAgeMs: 1_000 })
    let finish: () => void = () => undefined
    server.onInfer = async () => {
      await new Promise<void>((resolve) => (finish = resolve))
      return []
    }
    const client = new GrpcClient(port)
    onTestFinished(() => client.close())
    const infer = client.call('ModelInfer', plain)
    await expect.poll(() => server.requests.length).toBe(1)
    const session = await http2To(port)
    const told = goAway(session)
    const closed = new Promise((resolve) => session.once('close', resolve))
    expect(await told).toEqual({ code: constants.NGHTTP2_NO_ERROR, said: 'max_age' })
    await closed
    expect(await client.call('ServerLive', {})).toEqual({ live: true })
    finish()
    expect(await infer).toMatchObject({ model_name: 'plain' })
  })

  it.skipIf(tritonClients === undefined)('lose no call of tritonclient to their age', async () => {
    const { port } = await served(how, { maxConnectionAgeMs: 100 })
    const suite = join(import.meta.dirname, '../../clients/connection_age_suite.py')
    const said = await runClient(tritonClients?.python ?? '', [suite, `127.0.0.1:${port}`, '600'], 25_000)
    expect(said.trim()).toBe('600')
  })

  it('cut calls once the grace of their age is over', async () => {
    const { port, server } = await served(how, { maxConnectionAgeMs: 100, maxConnectionAgeGraceMs: 100 })
    server.onInfer = () => new Promise(() => undefined)
    const client = new GrpcClient(port)
    onTestFinished(() => client.close())
    const stream = client.stream('ModelStreamInfer')
    const ended = new Promise((resolve) => stream.on('error', resolve))
    stream.write(plain)
    expect(await ended).toMatchObject({ code: 14 })
  })
})

describe('pings that come too soon', () => {
  const rules = { keepaliveWithoutCalls: false, maxPingStrikes: 2, minPingIntervalMs: 1_000 }

  it.each([
    ['are those within the interval', true, [0, 999, 1_998, 2_997], [false, false, false, true]],
    [
      'are none that keep the interval',
      true,
      [0, 1_000, 2_000, 3_000, 4_000],
      [false, false, false, false, false],
    ],
    [
      'are those within two hours, without a call',
      false,
      [0, 1_000, 2_000, 7_199_999 + 2_000],
      [false, false, false, true],
    ],
    ['are none two hours apart', false, [0, 7_200_000, 14_400_000, 21_600_000], [false, false, false, false]],
  ])('%s', (_, hasCalls, times, over) => {
    let atMs = 0
    const strikes = new PingStrikes(rules, () => atMs)
    expect(
      times.map((ms) => {
        atMs = ms
        return strikes.ping(hasCalls)
      }),
    ).toEqual(over)
  })

  it('are forgotten when something is sent', () => {
    const strikes = new PingStrikes(rules, () => 0)
    const said: boolean[] = []
    for (let round = 0; round < 3; round++) {
      said.push(strikes.ping(true), strikes.ping(true))
      strikes.forget()
    }
    expect(said).toEqual(said.map(() => false))
  })
})
