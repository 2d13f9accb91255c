import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ServerResponse } from 'node:http'
import { nowMs } from '../../lifecycle/clock.js'
import type { TraceHeaders } from '../../messages/traceparent.js'
import type { ModelServer } from '../../serving/model-server.js'
import type { CodecPool } from '../codec/codec-pool.js'
import { mostHere, TooLongHereError } from '../codec/here-or-elsewhere.js'
import { readForModel } from '../read-for-model.js'
import { acceptedEncoding, deflated, inflated, readBody, type Encoding } from './body.js'
import { headerLength, headerLengthName } from './header-length.js'
import { inferAnswer, type InferAnswer } from './infer-answer.js'
import { parseInferBody, type ParsedInfer } from './infer-body.js'
import { rawInfer } from './raw-infer.js'
import { checkShared } from './shared-memory-body.js'
import { TensorTexts } from './tensor-texts.js'

export type InferRouteOptions = Readonly<{
  /** Largest body, and largest after decompression. */
  maxBodyBytes: number
  /** Reads and writes what would hold the loop. */
  pool: CodecPool
}>

/**
 * One inference: body in, body out. Tensors of a request are views of its body and those of the answer go to the socket as they are,
 * unless a side asked for compression.
 *
 * @throws ServingError, BodyTooLargeError
 */
export async function answerInfer(
  server: ModelServer,
  request: FastifyRequest,
  reply: FastifyReply,
  target: Readonly<{ model: string; version: string }>,
  { maxBodyBytes, pool }: InferRouteOptions,
): Promise<void> {
  const startedMs = nowMs()
  const headerBytes = Number(request.headers[headerLengthName] ?? 0)
  const received = await readBody(request.raw, maxBodyBytes, headerBytes)
  const endedMs = nowMs()
  const body = await inflated(received, request.headers['content-encoding'], maxBodyBytes)
  const client = new AbortController()
  const { signal } = client
  const onClose = (): void => client.abort()
  reply.raw.once('close', onClose)
  try {
    const { request: infer, forms } = await readForModel(server, target, async () => {
      const parsed = await parse(server, request, body, target, pool, signal)
      checkShared(server, parsed.request)
      return parsed
    })
    const traceHeaders = traceHeadersOf(request.headers)
    const arrival = { protocol: 'HTTP', startedMs, endedMs, traceHeaders } as const
    const response = await server.infer({ ...infer, signal, arrival })
    if (response.onSent !== undefined) tellWhenSent(reply.raw, response.onSent)
    const answer = await inferAnswer(response, forms, new TensorTexts(pool, signal))
    await send(reply, answer, acceptedEncoding(request.headers['accept-encoding']))
  } finally {
    reply.raw.off('close', onClose)
  }
}

/** One that came twice is joined by a comma then: no `traceparent`, and still a `tracestate`. */
function traceHeadersOf({ traceparent, tracestate }: FastifyRequest['headers']): TraceHeaders {
  return { traceparent: traceparent?.toString(), tracestate: tracestate?.toString() }
}

function parse(
  server: ModelServer,
  request: FastifyRequest,
  body: Uint8Array,
  { model, version }: Readonly<{ model: string; version: string }>,
  pool: CodecPool,
  signal: AbortSignal,
): ParsedInfer | Promise<ParsedInfer> {
  const given = request.headers[headerLengthName]
  const headerBytes = headerLength(Array.isArray(given) ? given[0] : given, body.byteLength)
  if (headerBytes === 0) return rawInfer(server, body, model, version)
  const elsewhere = (): Promise<ParsedInfer> =>
    pool.run('inferBody', body, (moved) => ({ body: moved, headerBytes, model, version }), signal)
  if (headerBytes > mostHere.bytes) return elsewhere()
  try {
    return parseInferBody(body, headerBytes, model, version, mostHere.elements)
  } catch (error) {
    if (error instanceof TooLongHereError) return elsewhere()
    throw error
  }
}

function tellWhenSent(response: ServerResponse, onSent: (startedMs: number) => void): void {
  const startedMs = nowMs()
  const closed = (): void => onSent(startedMs)
  if (response.destroyed) closed()
  else response.once('close', closed)
}

async function send(reply: FastifyReply, answer: InferAnswer, encoding: Encoding | undefined): Promise<void> {
  const { parts, headerBytes } = answer
  const packed = encoding === undefined ? parts : await deflated(parts, encoding)
  reply.hijack()
  const response = reply.raw
  response.statusCode = 200
  response.setHeader(
    'Content-Type',
    headerBytes === undefined ? 'application/json' : 'application/octet-stream',
  )
  if (headerBytes !== undefined) response.setHeader('Inference-Header-Content-Length', headerBytes)
  if (encoding !== undefined) response.setHeader('Content-Encoding', encoding)
  write(response, packed)
}

/** In one system call, without joining the parts. */
function write(response: ServerResponse, parts: readonly Uint8Array[]): void {
  response.setHeader(
    'Content-Length',
    parts.reduce((bytes, part) => bytes + part.byteLength, 0),
  )
  response.cork()
  for (const part of parts) response.write(part)
  response.end()
  response.uncork()
}
