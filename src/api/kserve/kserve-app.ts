import type { IncomingMessage } from 'node:http'
import { fastify, type FastifyInstance, type FastifyReply } from 'fastify'
import { GantryError, isInternal } from '../../errors.js'
import type { Log } from '../../lifecycle/log.js'
import type { ModelServer } from '../../serving/model-server.js'
import { ServingError, type ServingStatus } from '../../tensors/serving-error.js'
import { logChange } from '../changes.js'
import { problemLine, toProblem } from '../problem.js'
import { bytesUnderWay, CodecPool } from '../codec/codec-pool.js'
import { originForm } from '../request-target.js'
import { securityHeaders } from '../security-headers.js'
import { answerUnreadable } from '../unreadable-request.js'
import { declineUpgrades } from '../upgrade-offers.js'
import { kserveRoutes, type KserveOptions } from './kserve-routes.js'

export type KserveAppOptions = Omit<KserveOptions, 'pool'> &
  Readonly<{
    /** Shared with others; else the application has its own. */
    pool?: CodecPool
    log: Log
    /** From the first byte of a request to its last. */
    requestTimeoutMs?: number
    /** Offers of an upgrade that somebody else answers. */
    takesUpgrade?: (request: IncomingMessage) => boolean
  }>

const headersTimeoutMs = 10_000
const defaultRequestTimeoutMs = 60_000
/** How often Node looks for requests past their time. */
const timeoutCheckMs = 1_000

/** An HTTP application that speaks KServe v2 and nothing else. It checks nobody's access: that is for what stands before it. */
export function createKserveApp(server: ModelServer, options: KserveAppOptions): FastifyInstance {
  const requestTimeoutMs = options.requestTimeoutMs ?? defaultRequestTimeoutMs
  const app = fastify({
    logger: false,
    exposeHeadRoutes: false,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: 75_000,
    routerOptions: { maxParamLength: 256 },
    rewriteUrl: originForm,
    forceCloseConnections: 'idle',
    // No hook has seen such a request.
    frameworkErrors: (error, _request, reply) =>
      void sendError(reply.headers({ ...securityHeaders, 'cache-control': 'no-store' }), error, options.log),
    clientErrorHandler: answerUnreadable,
    http: {
      headersTimeout: Math.min(headersTimeoutMs, requestTimeoutMs),
      connectionsCheckingInterval: Math.min(timeoutCheckMs, requestTimeoutMs),
      maxHeaderSize: 16 * 1024,
    },
  })
  declineUpgrades(app.server, options.takesUpgrade)
  leaveBodies(app)
  app.addHook('onResponse', async (request, reply) => logChange(options.log, request, reply))
  app.setErrorHandler((error, _request, reply) => sendError(reply, error, options.log))
  app.setNotFoundHandler((_request, reply) => sendJsonError(reply, 404, 'Not Found'))
  const pool = options.pool ?? ownPool(app, options)
  kserveRoutes(app, server, { ...options, pool })
  return app
}

function ownPool(app: FastifyInstance, { maxBodyBytes }: KserveAppOptions): CodecPool {
  const pool = new CodecPool({ maxBytes: bytesUnderWay(maxBodyBytes) })
  app.addHook('onClose', () => pool.close())
  return pool
}

/** Whatever the content type, or without one: the routes read the body themselves. */
function leaveBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _body, done) => done(null))
}

function sendError(reply: FastifyReply, error: unknown, log: Log): FastifyReply {
  if (reply.raw.headersSent) return reply
  if (error instanceof ServingError) return sendJsonError(reply, httpStatus[error.status], error.message)
  if (error instanceof GantryError && !isInternal(error)) return sendProblem(reply, error)
  const status = statusCode(error)
  if (status < 500)
    return sendJsonError(reply, status, error instanceof Error ? error.message : 'Bad Request')
  log.error({ err: error }, 'request of the model server failed')
  return sendJsonError(reply, 500, 'internal error')
}

/** What is not about models, such as a token that is missing, in the form that Triton's clients know. */
function sendProblem(reply: FastifyReply, error: GantryError): FastifyReply {
  const { problem, headers } = toProblem(error)
  return sendJsonError(reply.headers(headers), problem.status, problemLine(problem))
}

function statusCode(error: unknown): number {
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : undefined
  return typeof status === 'number' && status >= 400 ? status : 500
}

/** The connection is closed where a body may be left unread. */
function sendJsonError(reply: FastifyReply, status: number, message: string): FastifyReply {
  if (!reply.request.raw.complete) void reply.header('connection', 'close')
  if (status === 501) void reply.header('accept-encoding', 'gzip, deflate')
  return reply
    .code(status)
    .type('application/json')
    .send(JSON.stringify({ error: message }))
}

/** As Triton answers. */
export const httpStatus: Readonly<Record<ServingStatus, number>> = {
  INTERNAL: 500,
  NOT_FOUND: 404,
  UNAVAILABLE: 503,
  UNSUPPORTED: 501,
  INVALID_ARG: 400,
  ALREADY_EXISTS: 400,
  CANCELLED: 400,
  UNKNOWN: 400,
}
