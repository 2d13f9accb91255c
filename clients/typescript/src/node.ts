import { GantryStream, type ConnectOptions } from './gantry-stream.js'
import { nodeSocket, type ClientTls } from './node-socket.js'

export type NodeConnectOptions = ConnectOptions & Readonly<{ tls?: ClientTls | undefined }>

/** Opens the live stream of a service. @throws GantryClientError for an option that is wrong. */
export function connect({ tls, ...options }: NodeConnectOptions): GantryStream {
  return new GantryStream(options, nodeSocket(tls))
}

export type { Address, Token } from './address.js'
export { GantryClientError, type ClientErrorCode } from './client-error.js'
export { GantryStream, type ConnectOptions } from './gantry-stream.js'
export type * from './messages.js'
export type { ClientTls } from './node-socket.js'
export { GantryApi, type Camera, type Fetch, type PastQuery } from './results-api.js'
export { monotonicMs, ServiceClock } from './service-clock.js'
export type { StreamState } from './stream-connection.js'
