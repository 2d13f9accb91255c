import { ServerInterceptingCall, type ServerInterceptor } from '@grpc/grpc-js'

/**
 * Sends the status of a unary call right behind its message, so that both leave in one write and wake the client once. The library
 * by itself waits until the message is written.
 */
export const statusBehindMessage: ServerInterceptor = (method, call) =>
  method.requestStream || method.responseStream ? new ServerInterceptingCall(call) : new UnaryCall(call)

class UnaryCall extends ServerInterceptingCall {
  override sendMessage(...[message, sent]: Parameters<ServerInterceptingCall['sendMessage']>): void {
    super.sendMessage(message, () => undefined)
    sent()
  }
}
