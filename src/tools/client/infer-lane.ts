import type { GantryError } from '../../errors.js'

/** A request as it goes over the wire, made once and sent any number of times. */
export type PreparedRequest = Readonly<{
  /** In one piece, so that it is one write; large tensors of requests that are sent once stand alone, so that they are not copied. */
  chunks: readonly Uint8Array[]
}>

/** The answer to a request, as far as it was kept. */
export type LaneAnswer = Readonly<{
  /** Headers of HTTP/1.1 as they came, without the status line; empty for gRPC. */
  head: string
  /** Body over HTTP, message over gRPC. It belongs to the receiver. */
  body: Buffer
}>

/**
 * What became of a request, with its times by the monotonic clock in milliseconds. `sentMs` is when sending began, `writtenMs` when the
 * system had taken the request or would take it by itself, `firstByteMs` when the answer began and `receivedMs` when it was whole. Of one
 * that failed the last two are when that was known.
 */
export type LaneOutcome = Readonly<{
  sentMs: number
  writtenMs: number
  firstByteMs: number
  receivedMs: number
  error: GantryError | undefined
  /** Undefined with an error, and where nobody wanted it. */
  answer: LaneAnswer | undefined
}>

/**
 * A way to a server for one request at a time: as many lanes as requests shall be under way. It connects with the first request, and
 * again with the one after its connection was lost.
 *
 * @typeParam Request - what is sent.
 */
export interface InferLane<Request = PreparedRequest> {
  /**
   * Sends a request; the one before it must have been answered.
   *
   * @param keep - the answer is wanted, not just that there was one.
   * @param done - called once, never before this returns. Errors: ServerUnreachableError when there is no connection,
   *   ServerLostError when it is lost, ServerTokenError, RemoteModelMissingError, ServerRefusalError, ServerAnswerError.
   */
  send(request: Request, keep: boolean, done: (outcome: LaneOutcome) => void): void
  /** Ends the connection; a request that is under way fails. Idempotent. */
  close(): void
}
