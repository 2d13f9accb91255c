import { once } from 'node:events'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { takeGrpcLog } from '../../../src/api/grpc/grpc-log.js'
import { startGrpc } from '../../../src/api/grpc/grpc-server.js'
import { GrpcListener } from '../../../src/processes/model-server/grpc-listener.js'
import { FakeModelServer } from '../../support/fake-model-server.js'
import { GrpcClient } from '../../support/grpc-client.js'
import { recordingLog } from '../../support/silent-log.js'
import { until } from '../../support/until.js'

let other: Server
let port: number

beforeEach(async () => {
  other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  port = (other.address() as AddressInfo).port
})
afterEach(() => void other.close())

it('tells that its port is taken, once and in the log alone, and listens when it is free', async () => {
  const stderr = vi.spyOn(console, 'error')
  const { log, lines } = recordingLog()
  takeGrpcLog(log)
  const open = () => startGrpc(new FakeModelServer({}), { host: '127.0.0.1', port, log })
  const listener = new GrpcListener(open, log, 10)
  await listener.start()
  expect(listener.state).toEqual({ port: null, reason: `127.0.0.1:${port} is already in use` })
  other.close()
  await until('the port taken', () => listener.state.port ?? undefined)
  expect(listener.state).toEqual({ port, reason: '' })
  const client = new GrpcClient(port)
  expect(await client.call('ServerLive', {})).toMatchObject({ live: true })
  client.close()
  await listener.stop(0)
  expect(lines.filter(({ msg }) => msg === 'gRPC cannot listen, trying again')).toHaveLength(1)
  expect(lines.some(({ by, level }) => by === 'grpc-js' && level === 20)).toBe(true)
  expect(stderr).not.toHaveBeenCalled()
})
