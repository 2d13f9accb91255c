import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { surviveAcceptErrors } from '../../api/accept-errors.js'
import { ListenError, PortInUseError } from '../../api/errors.js'
import type { Log } from '../../lifecycle/log.js'
import type { OpenedGrpc } from './grpc-listener.js'

export type GrpcDoorOptions = Readonly<{
  host: string
  /** 0 takes any that is free. */
  port: number
  /** Gets each connection; nothing was read of it, and nothing may be here. */
  take: (socket: Socket) => void
  log: Log
}>

/**
 * Listens for gRPC in the place of a process that is started by the first connection.
 *
 * @throws PortInUseError, ListenError
 */
export async function openGrpcDoor({ host, port, take, log }: GrpcDoorOptions): Promise<OpenedGrpc> {
  const server = createServer({ pauseOnConnect: true, noDelay: true }, take)
  const address = `${host.includes(':') ? `[${host}]` : host}:${port}`
  try {
    server.listen(port, host)
    await once(server, 'listening')
  } catch (error) {
    const inUse = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
    throw inUse ? new PortInUseError(address, 'grpcPort', error) : new ListenError(address, error)
  }
  surviveAcceptErrors(server, log)
  const close = (): Promise<void> => {
    server.close()
    return Promise.resolve()
  }
  return { port: (server.address() as AddressInfo).port, drain: close, stop: close }
}
