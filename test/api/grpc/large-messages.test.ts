import { Server, ServerCredentials, type ServerInterceptor } from '@grpc/grpc-js'
import { once } from 'node:events'
import { connect, type ClientHttp2Session } from 'node:http2'
import { expect, it, onTestFinished } from 'vitest'
import { startGrpc } from '../../../src/api/grpc/grpc-server.js'
import { largeMessages } from '../../../src/api/grpc/large-messages.js'
import { MessageAssembly } from '../../../src/api/grpc/message-assembly.js'
import { FakeModelServer } from '../../support/fake-model-server.js'
import { silentLog } from '../../support/silent-log.js'
import { until } from '../../support/until.js'

const emptyMessage = Buffer.alloc(5)

function connected(port: number): ClientHttp2Session {
  const session = connect(`http://127.0.0.1:${port}`)
  onTestFinished(() => session.destroy())
  return session
}

async function asked(session: ClientHttp2Session, path: string): Promise<void> {
  const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' }
  const stream = session.request(headers)
  stream.resume().end(emptyMessage)
  await once(stream, 'end')
}

it('lets a client send a megabyte before it waits for leave, from its second call on', async () => {
  const grpc = await startGrpc(new FakeModelServer({}), { host: '127.0.0.1', port: 0, log: silentLog() })
  onTestFinished(() => grpc.stop(0))
  const session = connected(grpc.port)
  const path = '/inference.GRPCInferenceService/ServerLive'
  await asked(session, path)
  await until('the window', () => session.remoteSettings.initialWindowSize === 1024 ** 2, 5_000)
  await asked(session, path)
  expect(session.state.remoteWindowSize).toBeGreaterThan(1_000_000)
})

it('finds the decoder of the library, and takes its place', async () => {
  const decoders: unknown[] = []
  const look: ServerInterceptor = (_, call) => {
    decoders.push((call as unknown as { decoder?: unknown }).decoder)
    return call as ReturnType<ServerInterceptor>
  }
  const server = new Server({ interceptors: [look, largeMessages(100), look] })
  onTestFinished(() => server.forceShutdown())
  const same = (bytes: Buffer): Buffer => bytes
  const codec = { requestSerialize: same, requestDeserialize: same, responseSerialize: same }
  const kind = { path: '/test/One', requestStream: false, responseStream: false }
  server.addService(
    { One: { ...kind, ...codec, responseDeserialize: same } },
    { One: (_: unknown, answer: (error: null, value: Buffer) => void) => answer(null, Buffer.alloc(0)) },
  )
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  )
  await asked(connected(port), kind.path)
  expect(decoders).toEqual([
    expect.objectContaining({ write: expect.any(Function) as unknown }),
    expect.any(MessageAssembly),
  ])
})
