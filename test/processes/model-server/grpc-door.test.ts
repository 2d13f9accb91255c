import { connect, type Socket } from 'node:net'
import { once } from 'node:events'
import { afterEach, expect, it } from 'vitest'
import { startGrpc, type GrpcServer } from '../../../src/api/grpc/grpc-server.js'
import { openGrpcDoor } from '../../../src/processes/model-server/grpc-door.js'
import { FakeModelServer } from '../../support/fake-model-server.js'
import { GrpcClient } from '../../support/grpc-client.js'
import { silentLog } from '../../support/silent-log.js'

const log = silentLog()
const cleanUp: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step()
})

async function door(take: (socket: Socket) => void): Promise<number> {
  const opened = await openGrpcDoor({ host: '127.0.0.1', port: 0, take, log })
  cleanUp.push(() => opened.stop(0))
  return opened.port
}

async function servingNoPort(): Promise<GrpcServer> {
  const grpc = await startGrpc(new FakeModelServer({}), { host: '127.0.0.1', port: undefined, log })
  cleanUp.push(() => grpc.stop(0))
  return grpc
}

it('gives connections away, to a server that listens nowhere', async () => {
  const grpc = await servingNoPort()
  expect(grpc.port).toBe(0)
  const client = new GrpcClient(await door((socket) => grpc.adopt(socket.resume())))
  expect(await client.call('ServerLive', {})).toMatchObject({ live: true })
  client.close()
})

it('reads nothing of them', async () => {
  const taken: Socket[] = []
  const port = await door((socket) => void taken.push(socket))
  const client = connect(port, '127.0.0.1')
  await once(client, 'connect')
  client.write('PRI')
  await expect.poll(() => taken.length).toBe(1)
  expect(taken[0]?.isPaused()).toBe(true)
  expect(taken[0]?.bytesRead).toBe(0)
  taken[0]?.destroy()
  client.destroy()
})

it('tells that its port is taken', async () => {
  const port = await door((socket) => void socket.destroy())
  await expect(openGrpcDoor({ host: '127.0.0.1', port, take: () => undefined, log })).rejects.toThrow(
    `127.0.0.1:${port} is already in use`,
  )
})

it('ends calls of connections that it was given with the server', async () => {
  const grpc = await servingNoPort()
  const client = new GrpcClient(await door((socket) => grpc.adopt(socket.resume())))
  expect(await client.call('ServerReady', {})).toMatchObject({ ready: true })
  await grpc.drain(1_000)
  await grpc.stop(1_000)
  await expect(client.call('ServerLive', {}, { deadlineMs: 2_000 })).rejects.toMatchObject({
    details: expect.any(String) as string,
  })
  client.close()
})
