import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ServerResponse } from 'node:http'
import { nowMs } from '../../lifecycle/clock.js'
import type { Caller } from '../../serving/infer.js'
import type { ModelServer } from '../../serving/model-server.js'
import { readForModel } from '../read-for-model.js'
import { acceptedEncoding, deflated, inflated, readBody, type Encoding } from './body.js'
import { headerLength, headerLengthName } from './header-length.js'
import { inferAnswer, type InferAnswer } from './infer-answer.js'
import { parseInferBody, type ParsedInfer } from './infer-body.js'
import { rawInfer } from './raw-infer.js'

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
  maxBodyBytes: number,
): Promise<void> {
  const startedMs = nowMs()
  const headerBytes = Number(request.headers[headerLengthName] ?? 0)
  const received = await readBody(request.raw, maxBodyBytes, headerBytes)
  const endedMs = nowMs()
  const body = await inflated(received, request.headers['content-encoding'], maxBodyBytes)
  const client = new AbortController()
  const onClose = (): void => client.abort()
  reply.raw.once('close', onClose)
  try {
    const { request: infer, forms } = readForModel(server, target, () =>
      parse(server, request, body, target, {
        signal: client.signal,
        arrival: { protocol: 'HTTP', startedMs, endedMs },
      }),
    )
    const response = await server.infer(infer)
    if (response.onSent !== undefined) tellWhenSent(reply.raw, response.onSent)
    await send(reply, inferAnswer(response, forms), acceptedEncoding(request.headers['accept-encoding']))
  } finally {
    reply.raw.off('close', onClose)
  }
}

function parse(
  server: ModelServer,
  request: FastifyRequest,
  body: Uint8Array,
  { model, version }: Readonly<{ model: string; version: string }>,
  caller: Caller,
): ParsedInfer {
  const given = request.headers[headerLengthName]
  const headerBytes = headerLength(Array.isArray(given) ? given[0] : given, body.byteLength)
  return headerBytes === 0
    ? rawInfer(server, body, model, version, caller)
    : parseInferBody(body, headerBytes, model, version, caller)
}

function tellWhenSent(response: ServerResponse, onSent: (startedMs: number) => void): void {
  const startedMs = nowMs()
  const closed = (): void => onSent(startedMs)
  if (response.destroyed) closed()
  else response.once('close', closed)
}

async function send(reply: FastifyReply, answer: InferAnswer, encoding: Encoding | undefined): Promise<void> {
  const { parts, headerBytes } = answer
  const packed = encoding === undefined ? parts : [await deflated(parts, encoding)]
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
