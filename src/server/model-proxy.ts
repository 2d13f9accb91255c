import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import {
  Agent,
  request as httpRequest,
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from 'node:http'
import type { Log } from '../lifecycle/log.js'
import { toProblem } from './problem.js'

/** Where `/v2` is answered. */
export type ModelUpstream = Readonly<{
  /** Unix socket that only this user can reach. */
  socketPath: string
  ready: boolean
}>

export type ModelProxyOptions = Readonly<{ upstream: ModelUpstream; maxRequestBytes: number; log: Log }>

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/** Headers that are about one connection, RFC 9110 7.6.1, and those that are for us. */
const notPassedOn = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'host',
  'authorization',
  'cookie',
])

/** Hands `/v2` to the model server: bodies pass as streams, unread. Errors have the form that Triton's clients know. */
export function modelProxy(app: FastifyInstance, options: ModelProxyOptions): void {
  const agent = new Agent({ keepAlive: true, maxFreeSockets: 256, scheduling: 'lifo' })
  app.addHook('onClose', () => agent.destroy())
  void app.register((scope, _, done) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, _body, parsed) => parsed(null))
    scope.setErrorHandler((error, _request, reply) => sendError(reply, error))
    for (const url of ['/v2', '/v2/*'])
      scope.route({
        method: [...methods],
        url,
        config: { auth: 'token' },
        handler: (request, reply) => passOn(request, reply, agent, options),
      })
    done()
  })
}

function sendError(reply: FastifyReply, error: unknown): void {
  const { problem, headers } = toProblem(error)
  void reply
    .code(problem.status)
    .headers(headers)
    .type('application/json')
    .send(JSON.stringify({ error: problem.detail }))
}

function passOn(
  request: FastifyRequest,
  reply: FastifyReply,
  agent: Agent,
  { upstream, maxRequestBytes, log }: ModelProxyOptions,
): void {
  const refuse = (status: number, error: string): void => {
    if (!request.raw.complete) void reply.header('connection', 'close')
    void reply.code(status).type('application/json').send(JSON.stringify({ error }))
  }
  if (Number(request.headers['content-length'] ?? 0) > maxRequestBytes)
    return refuse(413, tooLarge(maxRequestBytes))
  if (!upstream.ready) {
    void reply.header('retry-after', '1')
    return refuse(503, 'the model server is not running')
  }
  let ended = false
  const end = (status: number, error: string): void => {
    if (ended) return
    ended = true
    if (!reply.raw.headersSent) writeError(reply, status, error)
    else reply.raw.destroy()
  }
  const upstreamRequest = forward(request, reply, agent, upstream.socketPath, (error) => {
    if (!ended) log.warn({ err: error }, 'request to the model server failed')
    end(503, 'the model server ended while the request was in it')
  })
  // The model server would cut the connection while more is written to it, which looks like its end.
  let left = maxRequestBytes
  request.raw.on('data', (chunk: Buffer) => {
    left -= chunk.byteLength
    if (left >= 0) return
    request.raw.unpipe(upstreamRequest)
    end(413, tooLarge(maxRequestBytes))
    upstreamRequest.destroy()
  })
}

function tooLarge(maxRequestBytes: number): string {
  return `request body exceeds the maximum allowed size of ${maxRequestBytes} bytes`
}

function writeError({ raw }: FastifyReply, status: number, error: string): void {
  const headers = { 'content-type': 'application/json', connection: 'close' }
  raw.writeHead(status, status === 503 ? { ...headers, 'retry-after': '1' } : headers)
  raw.end(JSON.stringify({ error }))
}

function forward(
  request: FastifyRequest,
  reply: FastifyReply,
  agent: Agent,
  socketPath: string,
  failed: (error: Error) => void,
): ClientRequest {
  const { raw: incoming } = request
  const { raw: outgoing } = reply
  const ownHeaders = reply.getHeaders()
  reply.hijack()
  const upstream = httpRequest({
    socketPath,
    agent,
    method: request.method,
    path: incoming.url ?? '/',
    headers: { ...passedOn(incoming.headers), ...framing(incoming.headers) },
  })
  upstream.once('response', (answer: IncomingMessage) => {
    for (const [name, value] of Object.entries({ ...ownHeaders, ...passedOn(answer.headers) }))
      if (value !== undefined) outgoing.setHeader(name, value)
    if (!incoming.complete) outgoing.setHeader('connection', 'close')
    outgoing.writeHead(answer.statusCode ?? 502)
    answer.pipe(outgoing)
    answer.once('error', failed)
  })
  upstream.on('error', (error) => {
    if (!outgoing.destroyed) failed(error)
  })
  // The client is gone: what it asked for need not be computed.
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) upstream.destroy()
  })
  if (hasBody(incoming.headers)) incoming.pipe(upstream)
  else upstream.end()
  return upstream
}

/**
 * How the body is told from the next request, whatever the method and whatever `Connection` names: without it, Node sends the body of
 * a GET or DELETE bare, and it would be read as another request.
 */
function framing(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  if (headers['transfer-encoding'] !== undefined) return { 'transfer-encoding': 'chunked' }
  const length = headers['content-length']
  return length === undefined ? {} : { 'content-length': length }
}

function hasBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

function passedOn(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const named = (headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase())
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => !notPassedOn.has(name) && !named.includes(name)),
  )
}
