import type { ServerInterceptingCall, ServerInterceptor } from '@grpc/grpc-js'
import type { Http2Session } from 'node:http2'
import { grpcWindowBytes } from '../../kserve/grpc-window.js'
import { setDecoder, streamOf } from './library-call.js'
import { MessageAssembly } from './message-assembly.js'

/**
 * Takes large requests as they should be taken: widens the window of a connection, and of the streams in it, with its first call, and puts
 * messages together as they come. Stands before the interceptors that wrap a call.
 *
 * @param maxBytes - largest message.
 */
export function largeMessages(maxBytes: number): ServerInterceptor {
  const widened = new WeakSet<Http2Session>()
  return (_, call) => {
    setDecoder(call, new MessageAssembly(maxBytes))
    const session = streamOf(call)?.session
    if (session !== undefined && !session.destroyed && !widened.has(session)) {
      widened.add(session)
      session.setLocalWindowSize(grpcWindowBytes)
      session.settings({ initialWindowSize: grpcWindowBytes })
    }
    return call as ServerInterceptingCall
  }
}
