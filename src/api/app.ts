import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { nodeScope, scopeHeader } from '../cluster/node-scope.js'
import { redactText } from '../config/redact.js'
import type { Log } from '../lifecycle/log.js'
import { tokenAccepted, type AccessHeaders, type AccessSettings } from './access.js'
import { logChange } from './changes.js'
import { isModelPath } from './connection-switch.js'
import { guard, isTrusted, type GuardSettings } from './guard.js'
import {
  NoPictureError,
  MethodNotAllowedError,
  RouteNotFoundError,
  TooLargeError,
  UnsupportedMediaError,
} from './errors.js'
import { isKnown } from './etag.js'
import { peerOf } from './peer.js'
import { originForm } from './request-target.js'
import type { Answer, AuthRule, Route, RouteContext } from './route.js'
import { answerUnreadable } from './unreadable-request.js'
import { rateLimit } from './rate-limit.js'
import { sendModelProblem, sendProblem } from './send-problem.js'
import { TokenGuesses } from './token-guesses.js'
import { isPicture, pictureBodyType } from './picture-body.js'
import { parseRequest } from './validate.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    auth?: AuthRule
    /** Content types the route takes; absent for routes without a body. */
    bodyTypes?: readonly string[]
    /** The body is a picture, by whatever name. */
    takesPictures?: boolean
  }
}

export type AppSettings = GuardSettings & Readonly<{ maxBodyBytes: number; maxRequestsPerMinute: number }>

const jsonBodyBytes = 256 * 1024
/** Longest from the first byte of a connection to the end of the headers. */
export const headersTimeoutMs = 10_000
const defaultRequestTimeoutMs = 60_000
/** How often Node looks for connections past these; its own 30 s would let them linger. */
const timeoutCheckMs = 2_000

/**
 * An HTTP application with these routes and nothing else: guarded, validated, errors as problem+json.
 * Adding a route without an auth rule throws.
 */
export function createApp(
  routes: readonly Route[],
  context: RouteContext,
  settings: AppSettings,
  log: Log,
  /** From the first byte of a request to its last. */
  requestTimeoutMs = defaultRequestTimeoutMs,
  guesses = new TokenGuesses(settings.maxRequestsPerMinute),
): FastifyInstance {
  const app = fastify({
    logger: false,
    bodyLimit: jsonBodyBytes,
    requestTimeout: requestTimeoutMs,
    routerOptions: { maxParamLength: 256 },
    rewriteUrl: originForm,
    forceCloseConnections: 'idle',
    // The model server sends back what came over a connection of its own; nobody else reaches us without an address.
    trustProxy: (address: string | undefined) => address === undefined,
    // No hook has seen such a request, and no route of `/v2`, which has a form of its own.
    frameworkErrors: (error, request, reply) =>
      void (isModelPath(request.url) ? sendModelProblem : sendProblem)(reply, error),
    clientErrorHandler: answerUnreadable,
    http: {
      headersTimeout: Math.min(headersTimeoutMs, requestTimeoutMs),
      connectionsCheckingInterval: Math.min(timeoutCheckMs, requestTimeoutMs),
      maxHeaderSize: 16 * 1024,
    },
  })
  acceptBodies(app)
  app.addHook('onRoute', (options) => {
    if (options.config?.auth === undefined) throw new Error(`route ${options.url} has no auth rule`)
  })
  app.addHook(
    'onRequest',
    rateLimit(settings.maxRequestsPerMinute, ({ headers }) => isOfOtherNode(headers, context, settings)),
  )
  app.addHook('onRequest', ({ ip, headers }) => guesses.look(ip, headers, settings))
  app.addHook('onRequest', guard(settings, context.draining))
  app.addHook('onResponse', async (request, reply) => {
    logRequest(log, request, reply)
    logChange(log, request, reply)
  })
  app.setErrorHandler((thrown, request, reply) => {
    const error = isTooLarge(thrown) ? tooLarge(request) : thrown
    const { status, code } = sendProblem(reply, error)
    // Other 503s say what the caller can wait for.
    if (status === 500 || code === 'GANTRY_ENVIRONMENT')
      log.error({ err: error, method: request.method, route: routeName(request) }, 'request failed')
  })
  app.setNotFoundHandler((request) => {
    const allowed = allowedMethods(routes, request.url)
    throw allowed.length === 0 ? new RouteNotFoundError() : new MethodNotAllowedError(request.method, allowed)
  })
  for (const route of routes) register(app, route, context, settings)
  return app
}

/** Fastify's own word for it. */
function isTooLarge(thrown: unknown): boolean {
  return thrown instanceof Error && 'statusCode' in thrown && thrown.statusCode === 413
}

function tooLarge({ routeOptions: { bodyLimit, config } }: FastifyRequest): TooLargeError {
  return new TooLargeError(
    bodyLimit,
    config.takesPictures === true ? 'server.maxBodyBytes of the pipeline file' : undefined,
  )
}

function register(app: FastifyInstance, route: Route, allNodes: RouteContext, settings: AppSettings): void {
  const bodyTypes = route.pictureTypes ?? (route.bodySchema === undefined ? undefined : ['application/json'])
  app.route({
    method: route.method,
    url: route.path.replace(/\{(\w+)\}/g, ':$1'),
    ...(route.pictureTypes === undefined ? {} : { bodyLimit: settings.maxBodyBytes }),
    config: {
      auth: route.auth,
      ...(bodyTypes === undefined ? {} : { bodyTypes, takesPictures: route.pictureTypes !== undefined }),
    },
    handler: async (request, reply) => {
      const path = route.pathSchema && parseRequest(route.pathSchema, request.params, 'path')
      const context = asksThisNode(request.headers) ? ofThisNode(allNodes) : allNodes
      await route.find?.({ path, context } as never)
      const call = {
        path,
        query: route.querySchema && parseRequest(route.querySchema, request.query, 'query'),
        body: route.pictureTypes
          ? picture(request)
          : route.bodySchema && parseRequest(route.bodySchema, request.body, 'body', route.alsoWrong),
        context,
        signal: goneSignal(reply),
        trusted: route.auth !== 'health' || isTrusted(request.method, request.headers, settings),
      }
      return send(request, reply, await route.handle(call as never))
    },
  })
}

function asksThisNode(headers: AccessHeaders): boolean {
  return headers[scopeHeader] === nodeScope
}

/**
 * Another node asks for its own clients, which it has counted. The header alone, which anybody can write, says nothing: the token is what all
 * nodes have, and who has it may do anything here.
 */
function isOfOtherNode(headers: AccessHeaders, { gantry }: RouteContext, settings: AccessSettings): boolean {
  if (!asksThisNode(headers) || gantry.onThisNode === undefined) return false
  return settings.token !== undefined && tokenAccepted(headers, settings)
}

/** What another node asks is answered for this one alone: it has asked the others itself. */
function ofThisNode(context: RouteContext): RouteContext {
  return { ...context, gantry: context.gantry.onThisNode ?? context.gantry }
}

/** Aborted when the connection ends before the answer has left. */
function goneSignal({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController()
  raw.once('close', () => {
    if (!raw.writableFinished) gone.abort(new Error('who asked is gone'))
  })
  return gone.signal
}

/** JSON through Fastify, which refuses `__proto__` and `constructor.prototype`; pictures as they are; nothing else. */
function acceptBodies(app: FastifyInstance): void {
  app.removeContentTypeParser('text/plain')
  const parseJson = app.getDefaultJsonParser('error', 'error')
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    // Clients that send the type with everything send it with a DELETE as well.
    if (body === '' && request.routeOptions.config.bodyTypes === undefined) done(null, undefined)
    else void parseJson(request, String(body), done)
  })
  app.addContentTypeParser(pictureBodyType, { parseAs: 'buffer' }, (request, body, done) => {
    if (request.routeOptions.config.takesPictures === true) done(null, body)
    else done(new UnsupportedMediaError(undefined, ['application/json']))
  })
}

function picture({ body }: FastifyRequest): Uint8Array {
  if (!Buffer.isBuffer(body) || !isPicture(body)) throw new NoPictureError()
  return body
}

function send(request: FastifyRequest, reply: FastifyReply, answer: Answer): FastifyReply {
  void reply.code(answer.status ?? 200).headers({ ...answer.headers })
  const etag = answer.headers?.['etag']
  if (etag !== undefined && isKnown(etag, request.headers['if-none-match'])) return reply.code(304).send()
  if (answer.body === undefined) return reply.send()
  if (answer.type !== undefined) {
    const bytes = answer.body instanceof Uint8Array ? asBuffer(answer.body) : answer.body
    return reply.type(answer.type).send(bytes)
  }
  // Views are masked where they are made; this is the last door, so it looks once more.
  return reply.type('application/json; charset=utf-8').send(redactText(JSON.stringify(answer.body)))
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** Methods the path of a URL takes; empty when there is no such path. */
function allowedMethods(routes: readonly Route[], url: string): string[] {
  const path = url.split('?')[0] ?? ''
  const fits = routes.filter((route) => pathPattern(route.path).test(path)).map((route) => route.method)
  return [...new Set(fits.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])))]
}

function pathPattern(template: string): RegExp {
  const escaped = template.replace(/[.]/g, '\\.').replace(/\{\w+\}/g, '[^/]+')
  return new RegExp(`^${escaped}$`)
}

function routeName(request: FastifyRequest): string {
  return request.routeOptions.url ?? 'none'
}

/** The route, never the query: it may hold what is nobody's business. */
function logRequest(log: Log, request: FastifyRequest, reply: FastifyReply): void {
  const client = peerOf(request.raw.socket)?.subject
  log.debug(
    {
      ...(client !== undefined && { client }),
      method: request.method,
      route: routeName(request),
      status: reply.statusCode,
      durationMs: reply.elapsedTime,
    },
    'request answered',
  )
}
