import { GantryStream, type ConnectOptions } from './gantry-stream.js'
import { webSocket } from './web-socket.js'

/** Opens the live stream of a service. @throws GantryClientError for an option that is wrong. */
export function connect(options: ConnectOptions): GantryStream {
  return new GantryStream(options, webSocket(true))
}

export type { Address, Token } from './address.js'
export { GantryClientError, type ClientErrorCode } from './client-error.js'
export { GantryStream, type ConnectOptions } from './gantry-stream.js'
export type * from './messages.js'
export { GantryApi, type Camera, type Fetch, type PastQuery } from './results-api.js'
export { monotonicMs, ServiceClock } from './service-clock.js'
export {
  StreamConnection,
  type ConnectionOptions,
  type StreamListener,
  type StreamState,
} from './stream-connection.js'
export { webSocket } from './web-socket.js'
