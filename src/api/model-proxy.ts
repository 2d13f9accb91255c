import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Agent } from 'node:http'
import type { Socket } from 'node:net'
import type { Log } from '../lifecycle/log.js'
import type { AccessSettings } from './access.js'
import { isTrusted } from './guard.js'
import { healthPaths } from './kserve/health-paths.js'
import { problemLine, toProblem, type Problem } from './problem.js'
import { relay } from './relay.js'

/** Where `/v2` is answered. */
export type ModelUpstream = Readonly<{
  /** Unix socket that only this user can reach. */
  socketPath: string
  ready: boolean
  /**
   * Starts it where the first request does that. @returns undefined where there is nothing to wait for; else what resolves when it is
   * ready, or is not in time.
   */
  wake?(): Promise<void> | undefined
  /** Takes over connections, and gives back what of them is not its own. Without it every request is relayed. */
  connections?: Readonly<{
    /** @param head - what was read of it. @returns whether it took it; a promise where it has to start for that. */
    adopt(socket: Socket, head: Buffer): boolean | Promise<boolean>
    /** Unix socket of the service for requests that came over an adopted connection and are not for `/v2`. */
    returnPath: string
  }>
}>

export type ModelProxyOptions = Readonly<{
  upstream: ModelUpstream
  maxRequestBytes: number
  access: AccessSettings
  log: Log
}>

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/** Headers that the model server has no business with. */
const forUs: ReadonlySet<string> = new Set(['host', 'authorization', 'cookie'])

/** Hands `/v2` to the model server: bodies pass as streams, unread. Errors have the form that Triton's clients know. */
export function modelProxy(app: FastifyInstance, options: ModelProxyOptions): void {
  const agent = new Agent({ keepAlive: true, maxFreeSockets: 256, scheduling: 'lifo' })
  app.addHook('onClose', () => agent.destroy())
  void app.register((scope, _, done) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, _body, parsed) => parsed(null))
    scope.setErrorHandler((error, _request, reply) => {
      const { status } = sendError(reply, error)
      if (status === 500) options.log.error({ err: error }, 'request for the model server failed')
    })
    const handler = (request: FastifyRequest, reply: FastifyReply): void =>
      passOn(request, reply, agent, options)
    for (const url of ['/v2', '/v2/*'])
      scope.route({ method: [...methods], url, config: { auth: 'token' }, handler })
    for (const url of healthPaths) scope.route({ method: 'GET', url, config: { auth: 'health' }, handler })
    done()
  })
}

function sendError(reply: FastifyReply, error: unknown): Problem {
  const { problem, headers } = toProblem(error)
  void reply
    .code(problem.status)
    .headers(headers)
    .type('application/json')
    .send(JSON.stringify({ error: problemLine(problem) }))
  return problem
}

function passOn(
  request: FastifyRequest,
  reply: FastifyReply,
  agent: Agent,
  options: ModelProxyOptions,
): void {
  const { upstream, maxRequestBytes, access } = options
  const told = (error: string): string =>
    isTrusted(request.method, request.headers, access) ? JSON.stringify({ error }) : ''
  const refuse = (status: number, error: string): void => {
    if (!request.raw.complete) void reply.header('connection', 'close')
    void reply.code(status).type('application/json').send(told(error))
  }
  if (Number(request.headers['content-length'] ?? 0) > maxRequestBytes)
    return refuse(413, tooLarge(maxRequestBytes))
  const away = (): void => {
    void reply.header('retry-after', '1')
    refuse(503, 'the model server is not running')
  }
  const pass = (): void => send(request, reply, agent, options, told)
  if (upstream.ready) return pass()
  const waking = upstream.wake?.()
  if (waking === undefined) return away()
  void waking.then(() => (upstream.ready ? pass() : away()))
}

/** To a model server that is ready. */
function send(
  request: FastifyRequest,
  reply: FastifyReply,
  agent: Agent,
  { upstream, maxRequestBytes, log }: ModelProxyOptions,
  told: (error: string) => string,
): void {
  let ended = false
  const end = (status: number, error: string): void => {
    if (ended) return
    ended = true
    if (!reply.raw.headersSent) writeError(reply, status, told(error))
    else reply.raw.destroy()
  }
  const ownHeaders = reply.getHeaders()
  reply.hijack()
  const upstreamRequest = relay(request.raw, reply.raw, {
    socketPath: upstream.socketPath,
    agent,
    leaveOut: forUs,
    answerHeaders: ownHeaders,
    failed: (error) => {
      if (!ended) log.warn({ err: error }, 'request to the model server failed')
      end(503, 'the model server ended while the request was in it')
    },
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

function writeError({ raw }: FastifyReply, status: number, body: string): void {
  const headers = { 'content-type': 'application/json', connection: 'close' }
  raw.writeHead(status, status === 503 ? { ...headers, 'retry-after': '1' } : headers)
  raw.end(body)
}
