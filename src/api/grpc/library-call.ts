import type { ServerInterceptingCall } from '@grpc/grpc-js'
import type { ServerHttp2Stream } from 'node:http2'

/** What the first of a server's interceptors is given. */
export type LibraryCall = ConstructorParameters<typeof ServerInterceptingCall>[0]

/** Makes messages of what comes in a stream; each with the five bytes before it. */
export type MessageDecoder = Readonly<{ write(data: Buffer): Buffer[] }>

/** Private parts of the library. */
type Inside = LibraryCall & { stream?: Partial<ServerHttp2Stream>; decoder?: MessageDecoder }

/** The stream of a call; `undefined` where it is not found. */
export function streamOf(call: LibraryCall): ServerHttp2Stream | undefined {
  const { stream } = call as Inside
  return typeof stream?.respond === 'function' && typeof stream.write === 'function'
    ? (stream as ServerHttp2Stream)
    : undefined
}

/** Gives a call another decoder, before anything was read; does nothing where its own is not found. */
export function setDecoder(call: LibraryCall, decoder: MessageDecoder): void {
  const inside = call as Inside
  if (typeof inside.decoder?.write === 'function') inside.decoder = decoder
}
