import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AuthRule } from '../route.js'
import { readBody } from './body.js'

/** Largest body of a request that carries neither tensors nor files, as by gRPC. */
const smallBodyBytes = 1024 * 1024

type RouteTarget = Readonly<{ model: string; version: string }>

export type RouteCall = Readonly<{
  request: FastifyRequest
  reply: FastifyReply
  target: RouteTarget
  /** Of shared memory; empty: all. */
  region: string
  /** Reads a body that is settings and names alone; empty when there is none. */
  body: () => Promise<Uint8Array>
}>

export type RouteHandler = (call: RouteCall) => unknown

export type RouteHandlers = Readonly<Partial<Record<'GET' | 'HEAD' | 'POST', RouteHandler>>>

/** A handler that has answered by itself. */
export const answered = Symbol('answered')

export type AddRoute = (path: string, handlers: RouteHandlers, auth?: AuthRule) => void

/** As Triton answers what has nothing to tell. */
export function emptyJson(reply: FastifyReply): typeof answered {
  void reply.code(200).type('application/json').send('')
  return answered
}

/** Adds a path with its methods; others are 405. */
export function addRoute(
  app: FastifyInstance,
  path: string,
  handlers: RouteHandlers,
  auth: AuthRule,
  { maxBodyBytes }: Readonly<{ maxBodyBytes: number }>,
): void {
  app.all(path, { config: { auth } }, async (request, reply) => {
    const { method } = request
    const handler = method === 'GET' || method === 'HEAD' || method === 'POST' ? handlers[method] : undefined
    if (handler === undefined) throw new MethodError()
    const answer = await handler({
      request,
      reply,
      ...targetOf(request),
      body: () => readBody(request.raw, Math.min(smallBodyBytes, maxBodyBytes)),
    })
    if (answer !== answered) void reply.type('application/json').send(JSON.stringify(answer))
    return reply
  })
}

/** A method that the path does not take. */
export class MethodError extends Error {
  readonly statusCode = 405
  constructor() {
    super('Method Not Allowed')
    this.name = 'MethodError'
  }
}

function targetOf({ params }: FastifyRequest): Pick<RouteCall, 'target' | 'region'> {
  const { model = '', version = '', region = '' } = params as Readonly<Partial<Record<string, string>>>
  return { target: { model, version }, region }
}
