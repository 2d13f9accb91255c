import type { Metadata, sendUnaryData, ServerDuplexStream, ServerUnaryCall } from '@grpc/grpc-js'
import type { Log } from '../../lifecycle/log.js'
import { nowMs } from '../../lifecycle/clock.js'
import type { TraceHeaders } from '../../messages/traceparent.js'
import type { Arrival, InferResponse, SentRequest } from '../../runtime/infer.js'
import type { ModelServer } from '../../serving/model-server.js'
import { errorOf, wasRefused } from '../codec/codec-jobs.js'
import type { CodecPool } from '../codec/codec-pool.js'
import { TooLongHereError } from '../codec/here-or-elsewhere.js'
import { checkShared } from '../kserve/shared-memory-body.js'
import { readForModel } from '../read-for-model.js'
import { stoppingStatus } from './calls-under-way.js'
import { grpcStatus } from './grpc-status.js'
import { isLongHere, sentRequestOf, versionOf, type InferRequestMessage } from './infer-request-message.js'
import type { EncodedMessage } from './message-in-parts.js'
import { encodeInferResponse, encodeStreamError, encodeStreamResponse } from './infer-response-message.js'

/** Requests of a stream that may be under way before no more are read from it. */
const mostInStream = 64

/** `ModelInfer`. A client that cancels, or whose deadline passes, aborts the request. */
export function unaryInfer(
  server: ModelServer,
  pool: CodecPool,
  log: Log,
): (
  call: ServerUnaryCall<InferRequestMessage, EncodedMessage>,
  answer: sendUnaryData<EncodedMessage>,
) => void {
  return (call, answer) => {
    const client = new AbortController()
    const onCancel = () => client.abort()
    call.once('cancelled', onCancel)
    // The library calls every call cancelled once it has ended.
    const answered = () => call.off('cancelled', onCancel)
    const origin = { isStreamed: false, traceHeaders: traceHeadersOf(call.metadata) }
    readRequest(server, pool, call.request, client.signal, origin)
      .then((read) => infer(server, read, client.signal, encodeInferResponse))
      .then(
        ({ message, onSent }) => {
          answered()
          const startedMs = nowMs()
          answer(null, message)
          onSent?.(startedMs)
        },
        (error: unknown) => {
          answered()
          answer(grpcStatus(error, log))
        },
      )
  }
}

/** An answer as it goes out, and who is to be told when it has. */
type Encoded = Readonly<{ message: EncodedMessage; onSent: InferResponse['onSent'] }>

/** A request, or what is wrong with it; the id tells which it is. */
type ReadRequest = Readonly<
  { id: string; arrival: Arrival } & ({ request: SentRequest } | { error: unknown })
>

async function infer(
  server: ModelServer,
  read: ReadRequest,
  signal: AbortSignal,
  encode: (response: InferResponse) => EncodedMessage,
): Promise<Encoded> {
  if ('error' in read) throw read.error
  const response = await server.infer({ ...read.request, signal, arrival: read.arrival })
  return { message: encode(response), onSent: response.onSent }
}

/** What came twice is none. */
function traceHeadersOf(metadata: Metadata): TraceHeaders {
  const only = (name: string): string | undefined => {
    const values = metadata.get(name)
    return values.length === 1 ? values[0]?.toString() : undefined
  }
  return { traceparent: only('traceparent'), tracestate: only('tracestate') }
}

/** Never rejects. */
async function readRequest(
  server: ModelServer,
  pool: CodecPool,
  message: InferRequestMessage,
  signal: AbortSignal,
  origin: Pick<Arrival, 'isStreamed' | 'traceHeaders'>,
): Promise<ReadRequest> {
  // The library hands over whole messages: when one began to come it does not tell.
  const startedMs = nowMs()
  const arrival = { protocol: 'GRPC', startedMs, endedMs: startedMs, ...origin } as const
  try {
    if (message.refused instanceof TooLongHereError || isLongHere(message))
      return { ...(await readElsewhere(server, pool, message.bytes, signal)), arrival }
    if (message.refused !== undefined) throw message.refused
    const target = { model: message.model, version: versionOf(message.version) }
    const request = await readForModel(server, target, () => checked(server, sentRequestOf(message)))
    return { id: message.id, request, arrival }
  } catch (error) {
    return { id: message.id, error, arrival }
  }
}

async function readElsewhere(
  server: ModelServer,
  pool: CodecPool,
  bytes: Buffer,
  signal: AbortSignal,
): Promise<Readonly<{ id: string } & ({ request: SentRequest } | { error: unknown })>> {
  const { id, model, version, read } = await pool.run(
    'inferMessage',
    bytes,
    (moved) => ({ bytes: moved }),
    signal,
  )
  try {
    const request = await readForModel(server, { model, version: versionOf(version) }, () => {
      if (wasRefused(read)) throw errorOf(read)
      return checked(server, read)
    })
    return { id, request }
  } catch (error) {
    return { id, error }
  }
}

/** @throws ServingError for tensors in shared memory where that is off */
function checked(server: ModelServer, request: SentRequest): SentRequest {
  checkShared(server, request)
  return request
}

/**
 * `ModelStreamInfer`. Requests begin in the order they come and run side by side; answers leave in that order too. A request that
 * fails is answered by its error, and the stream goes on; with `triton_grpc_error: true` in the metadata it ends with the status.
 *
 * @param draining - aborts when the server stops: the requests that have come are answered, those that still come are refused, and then
 *   the stream ends, with UNAVAILABLE where the client has not ended its side.
 */
export function streamInfer(
  server: ModelServer,
  pool: CodecPool,
  draining: AbortSignal,
  log: Log,
): (call: ServerDuplexStream<InferRequestMessage, EncodedMessage>) => void {
  return (call) => new InferStream(server, pool, call, draining, log).start()
}

class InferStream {
  readonly #client = new AbortController()
  readonly #endsOnError: boolean
  /** All requests of a stream belong to the trace of the call. */
  readonly #origin: Pick<Arrival, 'isStreamed' | 'traceHeaders'>
  #underWay = 0
  #last: Promise<void> = Promise.resolve()
  /** Requests begin in their order, so that each is read after the one before it. */
  #read: Promise<unknown> = Promise.resolve()
  #ended = false

  constructor(
    readonly server: ModelServer,
    readonly pool: CodecPool,
    readonly call: ServerDuplexStream<InferRequestMessage, EncodedMessage>,
    readonly draining: AbortSignal,
    readonly log: Log,
  ) {
    this.#origin = { isStreamed: true, traceHeaders: traceHeadersOf(call.metadata) }
    this.#endsOnError = call.metadata.get('triton_grpc_error')[0] === 'true'
  }

  start(): void {
    const { call, draining } = this
    const onDrain = (): void => void this.#finish()
    draining.addEventListener('abort', onDrain, { once: true })
    const forget = (): void => draining.removeEventListener('abort', onDrain)
    call.once('cancelled', forget).once('close', forget)
    call.on('cancelled', () => this.#stop())
    call.on('error', () => this.#stop())
    call.on('data', (request: InferRequestMessage) => this.#take(request))
    call.on('end', () => {
      forget()
      void this.#last.then(() => this.#end())
    })
  }

  /** Ends the stream of a client that would send more, once all that it has sent is answered. */
  async #finish(): Promise<void> {
    for (let last: Promise<void> | undefined; last !== this.#last;) {
      last = this.#last
      await last
    }
    if (this.#ended) return
    this.#stop()
    this.call.emit('error', stoppingStatus)
  }

  #take(request: InferRequestMessage): void {
    if (this.#ended) return
    if (this.draining.aborted) return this.#refuse(request.id)
    if (++this.#underWay >= mostInStream) this.call.pause()
    const read = this.#read.then(() =>
      readRequest(this.server, this.pool, request, this.#client.signal, this.#origin),
    )
    this.#read = read
    const answer = read.then((given) => this.#answer(given))
    this.#last = this.#last.then(async () => {
      await this.#send(await answer, (await read).id)
      this.#underWay--
      this.call.resume()
    })
  }

  #refuse(id: string): void {
    this.#last = this.#last.then(() =>
      this.#ended ? undefined : this.#write(encodeStreamError(stoppingStatus.details, id)),
    )
  }

  /** Never rejects. */
  async #answer(request: ReadRequest): Promise<Encoded | Readonly<{ error: unknown }>> {
    try {
      return await infer(this.server, request, this.#client.signal, encodeStreamResponse)
    } catch (error) {
      return { error }
    }
  }

  async #send(answer: Encoded | Readonly<{ error: unknown }>, id: string): Promise<void> {
    if ('message' in answer) {
      const startedMs = nowMs()
      if (!this.#ended) await this.#write(answer.message)
      return answer.onSent?.(startedMs)
    }
    if (this.#ended) return
    const told = grpcStatus(answer.error, this.log)
    if (!this.#endsOnError) return this.#write(encodeStreamError(told.details, id))
    this.#stop()
    this.call.emit('error', told)
  }

  /** Waits while the client does not read. */
  async #write(message: EncodedMessage): Promise<void> {
    if (this.call.write(message) || this.#ended) return
    const { signal } = this.#client
    await new Promise<void>((resolve) => {
      const go = (): void => {
        this.call.off('drain', go)
        signal.removeEventListener('abort', go)
        resolve()
      }
      this.call.once('drain', go)
      signal.addEventListener('abort', go, { once: true })
    })
  }

  #end(): void {
    if (this.#ended) return
    this.#ended = true
    this.call.end()
  }

  #stop(): void {
    this.#ended = true
    this.#client.abort()
  }
}
