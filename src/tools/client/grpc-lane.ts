import type { GantryError } from '../../errors.js'
import { nowMs } from '../../lifecycle/clock.js'
import { ServerAnswerError } from './client-errors.js'
import type { GrpcChannel } from './grpc-channel.js'
import { statusError } from './grpc-status-error.js'
import type { HeaderFields } from './hpack-decoder.js'
import type { HeaderField } from './hpack-tables.js'
import type { Http2Connection, Http2Stream, StreamListener } from './http2-connection.js'
import type { InferLane, LaneOutcome, PreparedRequest } from './infer-lane.js'

const prefixBytes = 5
/** Of a request that a server sends back untouched, as one that restarts does. */
const mostTries = 3

/** A message with the five bytes that go before it. */
export function framed(message: Buffer): PreparedRequest {
  const prefix = Buffer.alloc(prefixBytes)
  prefix.writeUInt32BE(message.byteLength, 1)
  return { chunks: [Buffer.concat([prefix, message])] }
}

type Call = {
  readonly request: PreparedRequest
  readonly keep: boolean
  readonly done: (outcome: LaneOutcome) => void
  readonly sentMs: number
  writtenMs: number
  firstByteMs: number
  receivedBytes: number
  kept: Buffer[]
  hasStatus: boolean
  fault: GantryError | undefined
  tries: number
}

/** A place for one unary call at a time on a channel that others share. */
export class GrpcLane implements InferLane, StreamListener {
  readonly #fields: readonly HeaderField[]
  #connection: Http2Connection | undefined
  #stream: Http2Stream | undefined
  #call: Call | undefined
  #isClosed = false

  constructor(
    readonly channel: GrpcChannel,
    method: string,
  ) {
    this.#fields = channel.fields(method)
    channel.lanes += 1
  }

  send(request: PreparedRequest, keep: boolean, done: (outcome: LaneOutcome) => void): void {
    const sentMs = nowMs()
    this.#call = {
      request,
      keep,
      done,
      sentMs,
      writtenMs: sentMs,
      firstByteMs: 0,
      receivedBytes: 0,
      kept: [],
      hasStatus: false,
      fault: undefined,
      tries: 0,
    }
    this.#begin(this.#call)
  }

  /** A call that is under way fails. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    if (this.#stream !== undefined) this.#connection?.cancel(this.#stream)
    this.channel.release()
    this.failed(undefined, false)
  }

  headers(fields: HeaderFields): void {
    const call = this.#call
    if (call === undefined) return
    if (call.firstByteMs === 0) {
      call.firstByteMs = nowMs()
      const status = fields.get(':status') ?? 'none'
      if (status !== '200')
        call.fault = new ServerAnswerError(this.channel.target.url, `status ${status} of HTTP`)
    }
    // Behind the message; of a call that is refused at once it is in the head.
    if (!fields.has('grpc-status')) return
    call.hasStatus = true
    call.fault ??= statusError(this.channel.target.url, fields)
  }

  data(bytes: Buffer): void {
    const call = this.#call
    if (call === undefined) return
    call.receivedBytes += bytes.length
    if (call.keep) call.kept.push(bytes)
  }

  end(): void {
    const call = this.#call
    if (call === undefined) return
    const { url } = this.channel.target
    if (!call.hasStatus) call.fault ??= new ServerAnswerError(url, 'there is no status of gRPC in it')
    else if (call.receivedBytes < prefixBytes)
      call.fault ??= new ServerAnswerError(url, 'there is no message in it')
    this.#settle(call)
  }

  failed(cause: Error | undefined, isUntouched: boolean): void {
    const call = this.#call
    if (call === undefined) return
    if (isUntouched && call.tries < mostTries) return this.#begin(call)
    call.fault ??= this.channel.lost(this.#connection, cause)
    this.#settle(call)
  }

  #begin(call: Call): void {
    call.tries += 1
    this.#connection = this.channel.connection()
    this.#stream = this.#connection.request(this.#fields, call.request.chunks, this)
    call.writtenMs = nowMs()
  }

  #settle({ sentMs, writtenMs, firstByteMs, keep, kept, fault: error, done }: Call): void {
    this.#call = undefined
    this.#stream = undefined
    const receivedMs = nowMs()
    done({
      sentMs,
      writtenMs,
      firstByteMs: firstByteMs === 0 ? receivedMs : firstByteMs,
      receivedMs,
      error,
      answer: error === undefined && keep ? { head: '', body: messageOf(kept) } : undefined,
    })
  }
}

/** The message of an answer that is whole, in a buffer of its own. */
function messageOf(chunks: readonly Buffer[]): Buffer {
  return Buffer.concat(chunks).subarray(prefixBytes)
}
