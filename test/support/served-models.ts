import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { startGrpc } from '../../src/api/grpc/grpc-server.js'
import { createKserveApp } from '../../src/api/kserve/kserve-app.js'
import { type EchoModel, FakeModelServer } from './fake-model-server.js'
import { silentLog } from './silent-log.js'

export type ServedModels = Readonly<{
  server: FakeModelServer
  /** Addresses as `http://host:port` and `grpc://host:port`. */
  http: string
  grpc: string
  /** Ends both, as a process that dies does. */
  stop(): Promise<void>
}>

/** The real APIs, by HTTP and gRPC on free ports, in front of models that give back what they get; stopped when the test ends. */
export async function servedModels(models: Readonly<Record<string, EchoModel>>): Promise<ServedModels> {
  const server = new FakeModelServer(models)
  const app = createKserveApp(server, { maxBodyBytes: 16_000_000, log: silentLog() })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const grpc = await startGrpc(server, { host: '127.0.0.1', port: 0, log: silentLog() })
  const { port } = app.server.address() as AddressInfo
  const stop = async () => {
    app.server.closeAllConnections()
    await Promise.all([app.close(), grpc.stop(0)])
  }
  onTestFinished(stop)
  return { server, http: `http://127.0.0.1:${port}`, grpc: `grpc://127.0.0.1:${grpc.port}`, stop }
}
