import type { FastifyReply, FastifyRequest } from 'fastify'
import {
  hostAccepted,
  isAllowedOrigin,
  isFromBrowser,
  originAccepted,
  tokenAccepted,
  type AccessHeaders,
  type AccessSettings,
} from './access.js'
import { mayBePicture, pictureBodyType } from './picture-body.js'
import { ForbiddenError, StoppingError, UnauthorizedError, UnsupportedMediaError } from './errors.js'
import { checkHostHeader } from './request-target.js'
import { securityHeaders } from './security-headers.js'

export type GuardSettings = AccessSettings

const changing = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])
/** Longest name that DNS knows, with a port. */
const maxShownHost = 260

/**
 * What every request passes before its body is read: Host, Origin, token, content type. Who asks for health passes as well without
 * them, to hear the status alone.
 * A path without a rule, one that does not exist for instance, needs the token as well.
 */
export function guard(
  settings: GuardSettings,
  draining: () => boolean,
): (request: FastifyRequest, reply: FastifyReply) => Promise<void> {
  return async (request, reply) => {
    void reply.headers({ ...securityHeaders, 'cache-control': 'no-store' })
    checkHostHeader(request.raw)
    const { auth, bodyTypes, takesPictures = false } = request.routeOptions.config
    const anyone = auth === 'health' && (request.method === 'GET' || request.method === 'HEAD')
    if (!anyone) checkSite(request.method, request.headers, settings, auth !== 'open')
    allowOrigin(request, reply, settings)
    if (isPreflight(request, settings)) return void reply.code(204).send()
    if (!anyone && auth !== 'open' && !tokenAccepted(request.headers, settings)) throw new UnauthorizedError()
    if (draining() && changing.has(request.method)) throw new StoppingError()
    if (bodyTypes !== undefined) checkMediaType(request.headers, bodyTypes, takesPictures)
    if (takesPictures) request.raw.headers['content-type'] = pictureBodyType
  }
}

/**
 * Refuses requests that another site's page caused. The name that was asked for counts where such a page would be answered: it cannot
 * have the token, so that programs which need it may use any name.
 *
 * @param needsToken - whether the request is refused later on if it does not carry the token that is set.
 * @throws ForbiddenError `GANTRY_FORBIDDEN`
 */
export function checkSite(
  method: string,
  headers: AccessHeaders,
  settings: AccessSettings,
  needsToken = true,
): void {
  const fault = siteFault(method, headers, settings, needsToken)
  if (fault) throw fault
}

/** Whether the request would be answered where the token is needed. */
export function isTrusted(method: string, headers: AccessHeaders, settings: AccessSettings): boolean {
  return siteFault(method, headers, settings, true) === undefined && tokenAccepted(headers, settings)
}

function siteFault(
  method: string,
  headers: AccessHeaders,
  settings: AccessSettings,
  needsToken: boolean,
): ForbiddenError | undefined {
  const authenticates = settings.token !== undefined && (needsToken || tokenAccepted(headers, settings))
  if ((!authenticates || isFromBrowser(headers)) && !hostAccepted(headers, settings))
    return new ForbiddenError(
      `the Host header is not a name of this service: ${String(headers['host']).slice(0, maxShownHost)}`,
      'Add the name to server.allowedHosts, or use the address the service is bound to. Programs that send the token may use any name.',
    )
  if (originAccepted(method, headers, settings)) return undefined
  return new ForbiddenError(
    'pages of other sites may not use this service',
    'Add the origin of the page to server.allowedOrigins if it is meant to.',
  )
}

/** A JSON or picture type cannot come from a form, so no other site can send one without asking first. */
function checkMediaType(headers: AccessHeaders, accepted: readonly string[], takesPictures: boolean): void {
  const given = headers['content-type'] === undefined ? undefined : String(headers['content-type'])
  const type = given?.split(';')[0]?.trim().toLowerCase()
  if (type !== undefined && accepted.includes(type)) return
  if (takesPictures && mayBePicture(type, !isFromBrowser(headers))) return
  throw new UnsupportedMediaError(given, accepted)
}

function allowOrigin(request: FastifyRequest, reply: FastifyReply, settings: GuardSettings): void {
  const { origin } = request.headers
  if (settings.allowedOrigins.length > 0) void reply.header('vary', 'Origin')
  if (origin === undefined || !isAllowedOrigin(origin, settings)) return
  void reply.headers({
    'access-control-allow-origin': origin,
    'access-control-expose-headers': 'location, retry-after',
    'cross-origin-resource-policy': 'cross-origin',
  })
  if (isPreflight(request, settings))
    void reply.headers({
      'access-control-allow-methods': 'GET, HEAD, POST, PATCH, DELETE',
      'access-control-allow-headers': 'authorization, content-type',
      'access-control-max-age': '600',
    })
}

function isPreflight(request: FastifyRequest, settings: GuardSettings): boolean {
  const { origin } = request.headers
  return (
    request.method === 'OPTIONS' &&
    origin !== undefined &&
    request.headers['access-control-request-method'] !== undefined &&
    isAllowedOrigin(origin, settings)
  )
}
