import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2'
import { grpcWindowBytes } from '../../kserve/grpc-window.js'
import type { GantryError } from '../../errors.js'
import { nowMs } from '../../lifecycle/clock.js'
import { ServerAnswerError, ServerLostError, ServerUnreachableError } from './client-errors.js'
import { statusError } from './grpc-status-error.js'
import type { ServerTrust } from './http-lane.js'
import type { InferLane, LaneOutcome, PreparedRequest } from './infer-lane.js'
import type { ServerTarget } from './server-url.js'

const service = '/inference.GRPCInferenceService/'
const prefixBytes = 5

/** A message with the five bytes that go before it. */
export function framed(message: Buffer): PreparedRequest {
  const prefix = Buffer.alloc(prefixBytes)
  prefix.writeUInt32BE(message.byteLength, 1)
  return { chunks: [Buffer.concat([prefix, message])] }
}

/**
 * One connection of HTTP/2 for unary calls, any number at once. Node's own HTTP/2 without a client of gRPC on it, which would cost as much
 * again for each call.
 */
export class GrpcChannel {
  #session: ClientHttp2Session | undefined
  /** Lanes that are open. */
  lanes = 0
  #connected = false
  #cause: Error | undefined
  readonly #token: OutgoingHttpHeaders

  constructor(
    readonly target: ServerTarget,
    readonly trust: ServerTrust,
    token: string | undefined,
  ) {
    this.#token = token === undefined ? {} : { authorization: `Bearer ${token}` }
  }

  /** What a call of that name sends before its message. */
  headers(method: string): OutgoingHttpHeaders {
    return {
      [constants.HTTP2_HEADER_METHOD]: 'POST',
      [constants.HTTP2_HEADER_PATH]: service + method,
      [constants.HTTP2_HEADER_TE]: 'trailers',
      [constants.HTTP2_HEADER_CONTENT_TYPE]: 'application/grpc',
      ...this.#token,
    }
  }

  /** @returns a stream on the connection, which is made where there is none. */
  request(headers: OutgoingHttpHeaders): ClientHttp2Stream {
    // One that has just been closed says so in a moment.
    if (this.#session?.closed === true || this.#session?.destroyed === true) this.#session = undefined
    return (this.#session ??= this.#connect()).request(headers)
  }

  /** Why a call ended without an answer. */
  lost(error: Error | undefined): GantryError {
    const cause = this.#cause ?? error
    const detail = cause?.message ?? 'the connection was closed'
    return this.#connected
      ? new ServerLostError(this.target.url, detail, cause)
      : new ServerUnreachableError(this.target.url, detail, cause)
  }

  /** A lane of it was closed; the last one ends the connection. */
  release(): void {
    this.lanes -= 1
    if (this.lanes === 0) this.#session?.close()
  }

  close(): void {
    this.#session?.destroy()
  }

  #connect(): ClientHttp2Session {
    const { host, port, tls } = this.target
    const authority = `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`
    const session = connect(authority, {
      ...(this.trust.ca && { ca: this.trust.ca }),
      settings: { enablePush: false, initialWindowSize: grpcWindowBytes },
    })
    this.#connected = false
    this.#cause = undefined
    session.once('connect', () => {
      this.#connected = true
      session.setLocalWindowSize(grpcWindowBytes)
    })
    session.once('error', (error: Error) => (this.#cause = error))
    const drop = () => {
      if (this.#session === session) this.#session = undefined
    }
    // What is under way on it may still be answered.
    session.once('goaway', drop)
    session.once('close', drop)
    return session
  }
}

/** A place for one unary call at a time on a channel that others share. */
export class GrpcLane implements InferLane {
  readonly #headers: OutgoingHttpHeaders
  #stream: ClientHttp2Stream | undefined
  #isClosed = false

  constructor(
    readonly channel: GrpcChannel,
    method: string,
  ) {
    this.#headers = channel.headers(method)
    channel.lanes += 1
  }

  send({ chunks }: PreparedRequest, keep: boolean, done: (outcome: LaneOutcome) => void): void {
    const sentMs = nowMs()
    const stream = this.channel.request(this.#headers)
    this.#stream = stream
    if (chunks.length === 1) stream.end(chunks[0])
    else {
      for (const chunk of chunks) stream.write(chunk)
      stream.end()
    }
    const writtenMs = nowMs()
    const { url } = this.channel.target
    let firstByteMs = 0
    let receivedBytes = 0
    const kept: Buffer[] = []
    let fault: GantryError | undefined
    let ended = false
    let failure: Error | undefined
    stream.on('response', (headers: IncomingHttpHeaders & { ':status'?: number }) => {
      firstByteMs = nowMs()
      const status = headers[':status'] ?? 0
      if (status !== 200) fault = new ServerAnswerError(url, `status ${status} of HTTP`)
      // One that is refused at once has its status here.
      else if (headers['grpc-status'] !== undefined) {
        ended = true
        fault = statusError(url, headers)
      }
    })
    stream.on('data', (chunk: Buffer) => {
      receivedBytes += chunk.length
      if (keep) kept.push(chunk)
    })
    stream.on('trailers', (trailers: IncomingHttpHeaders) => {
      ended = true
      fault ??= statusError(url, trailers)
    })
    stream.on('error', (error: Error) => (failure = error))
    let isSettled = false
    const settle = () => {
      if (isSettled) return
      isSettled = true
      const receivedMs = nowMs()
      if (!ended) fault ??= this.channel.lost(failure)
      if (fault === undefined && receivedBytes < prefixBytes)
        fault = new ServerAnswerError(url, 'there is no message in it')
      const answer = fault === undefined && keep ? { head: '', body: messageOf(kept) } : undefined
      if (firstByteMs === 0) firstByteMs = receivedMs
      done({ sentMs, writtenMs, firstByteMs, receivedMs, error: fault, answer })
    }
    // An answer is whole before its stream is closed.
    stream.on('end', () => ended && settle())
    stream.on('close', settle)
  }

  /** A call that is under way fails. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#stream?.close(constants.NGHTTP2_CANCEL)
    this.channel.release()
  }
}

/** The message of an answer that is whole, in a buffer of its own. */
function messageOf(chunks: readonly Buffer[]): Buffer {
  return Buffer.concat(chunks).subarray(prefixBytes)
}
