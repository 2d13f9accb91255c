import { GantryError, type ErrorCode } from '../errors.js'
import { systemLimit } from '../lifecycle/system-limit.js'

/** One field of a request that is wrong. `path` is `sampleFps`, `region.width`, `items[3].id`; empty for the whole. */
export type FieldProblem = Readonly<{ path: string; message: string }>

/** An error of the HTTP side itself: it knows its status, which the code alone would not tell. */
export abstract class HttpError extends GantryError {
  abstract readonly status: number
  /** Response headers that belong to this answer, such as `Allow`. */
  readonly headers: Readonly<Record<string, string>> = {}
  readonly problems: readonly FieldProblem[] = []
}

export class BadRequestError extends HttpError {
  readonly code: ErrorCode = 'GANTRY_BAD_REQUEST'
  readonly status = 400
  constructor(
    message: string,
    override readonly problems: readonly FieldProblem[] = [],
    readonly hint = 'Correct the fields listed under "problems"; /openapi.json has the schema of every request.',
  ) {
    super(message)
    this.name = 'BadRequestError'
  }
}

/** More spans than one answer holds. */
export class CoverageTooLongError extends BadRequestError {
  constructor(most: number, withSpans: boolean) {
    super(
      `there are more than ${most} spans in that time`,
      [],
      withSpans
        ? 'Ask for one camera (cameraId), for less time (from, to), or for the sums alone (spans=0).'
        : 'Ask for one camera (cameraId), or for less time (from, to).',
    )
    this.name = 'CoverageTooLongError'
  }
}

export class NoPictureError extends HttpError {
  readonly code = 'GANTRY_IMAGE_INVALID'
  readonly status = 400
  readonly hint = 'Send the bytes of one JPEG or PNG picture as the body.'
  constructor() {
    super('the body does not begin as a JPEG or PNG picture does')
    this.name = 'NoPictureError'
  }
}

export class UnauthorizedError extends HttpError {
  readonly code = 'GANTRY_UNAUTHORIZED'
  readonly status = 401
  override readonly headers = { 'www-authenticate': 'Bearer realm="gantry"' }
  readonly hint = 'Send "Authorization: Bearer <token>" with the token of server.token in the pipeline file.'
  constructor() {
    super('this request needs the token of the service')
    this.name = 'UnauthorizedError'
  }
}

export class ForbiddenError extends HttpError {
  readonly code = 'GANTRY_FORBIDDEN'
  readonly status = 403
  constructor(
    message: string,
    readonly hint: string,
  ) {
    super(message)
    this.name = 'ForbiddenError'
  }
}

export class RouteNotFoundError extends HttpError {
  readonly code = 'GANTRY_NOT_FOUND'
  readonly status = 404
  readonly hint = '/openapi.json lists every path of this service.'
  constructor() {
    super('there is nothing at this path')
    this.name = 'RouteNotFoundError'
  }
}

export class NothingYetError extends HttpError {
  readonly code = 'GANTRY_NOT_FOUND'
  readonly status = 404
  readonly hint = 'The camera has no result yet: look at its state in /api/v1/cameras, then ask again.'
  constructor(cameraId: string) {
    super(`camera "${cameraId}" has no result yet`)
    this.name = 'NothingYetError'
  }
}

export class MethodNotAllowedError extends HttpError {
  readonly code = 'GANTRY_METHOD_NOT_ALLOWED'
  readonly status = 405
  readonly hint: string
  override readonly headers: Readonly<Record<string, string>>
  constructor(method: string, allowed: readonly string[]) {
    super(`this path does not take ${method}`)
    this.name = 'MethodNotAllowedError'
    this.headers = { allow: allowed.join(', ') }
    this.hint = `Use ${allowed.join(' or ')}.`
  }
}

export class UpgradeRequiredError extends HttpError {
  readonly code = 'GANTRY_BAD_REQUEST'
  readonly status = 426
  override readonly headers = { upgrade: 'websocket' }
  readonly hint = 'Connect with a WebSocket client that offers the sub-protocol "gantry.v1".'
  constructor() {
    super('the stream is a WebSocket')
    this.name = 'UpgradeRequiredError'
  }
}

export class UnsupportedMediaError extends HttpError {
  readonly code = 'GANTRY_UNSUPPORTED_MEDIA'
  readonly status = 415
  readonly hint: string
  constructor(given: string | undefined, accepted: readonly string[]) {
    super(
      given === undefined ? 'the request has no content type' : `content type "${given}" is not taken here`,
    )
    this.name = 'UnsupportedMediaError'
    this.hint = `Send ${accepted.join(' or ')} with the matching Content-Type header.`
  }
}

export class TooLargeError extends HttpError {
  readonly code = 'GANTRY_TOO_LARGE'
  readonly status = 413
  readonly hint: string
  /** @param setting - what raises the limit. */
  constructor(limitBytes: number, setting?: string) {
    super(`the body is larger than the ${limitBytes} bytes that this path takes`)
    this.hint = setting === undefined ? 'Send a smaller body.' : `Send a smaller body, or raise ${setting}.`
    this.name = 'TooLargeError'
  }
}

export class TooManyClientsError extends HttpError {
  readonly code = 'GANTRY_RATE_LIMITED'
  readonly status = 503
  override readonly headers = { 'retry-after': '5' }
  override readonly retryable = true
  readonly hint = 'Close clients that are not needed, or raise server.maxStreamClients.'
  constructor(limit: number) {
    super(`${limit} stream clients are connected, which is the limit`)
    this.name = 'TooManyClientsError'
  }
}

export class PreviewsBusyError extends HttpError {
  readonly code = 'GANTRY_RATE_LIMITED'
  readonly status = 503
  override readonly headers = { 'retry-after': '5' }
  override readonly retryable = true
  readonly hint = 'Wait until one of them has ended, and ask again.'
  constructor(limit: number) {
    super(`${limit} cameras are being tried, which is the limit`)
    this.name = 'PreviewsBusyError'
  }
}

export class RateLimitedError extends HttpError {
  readonly code = 'GANTRY_RATE_LIMITED'
  readonly status = 429
  override readonly headers: Readonly<Record<string, string>>
  override readonly retryable = true
  readonly hint = 'Ask less often, follow the stream instead of asking, or raise server.maxRequestsPerMinute.'
  constructor(perMinute: number, retryAfterSeconds: number) {
    super(`this address has sent ${perMinute} requests, or wrong tokens, within a minute, which is the limit`)
    this.name = 'RateLimitedError'
    this.headers = { 'retry-after': String(retryAfterSeconds) }
  }
}

export class StoppingError extends HttpError {
  readonly code = 'GANTRY_ENGINE_UNAVAILABLE'
  readonly status = 503
  override readonly headers = { 'retry-after': '5' }
  override readonly retryable = true
  readonly hint = 'Ask again once it has been started anew.'
  constructor() {
    super('the service is stopping')
    this.name = 'StoppingError'
  }
}

export class StreamAwayError extends HttpError {
  readonly code = 'GANTRY_SINK_UNAVAILABLE'
  readonly status = 503
  override readonly headers = { 'retry-after': '1' }
  override readonly retryable = true
  readonly hint = 'Connect again in a second; /readyz tells how its process is doing.'
  constructor() {
    super('the stream is being started')
    this.name = 'StreamAwayError'
  }
}

export class PageMissingError extends HttpError {
  readonly code = 'GANTRY_ENVIRONMENT'
  readonly status = 503
  readonly hint = 'Run "npm run build" in the project folder.'
  constructor() {
    super('the dashboard is missing from this installation')
    this.name = 'PageMissingError'
  }
}

export class PublicBindError extends GantryError {
  readonly code = 'GANTRY_PUBLIC_BIND'
  readonly hint =
    'Set server.token (16 characters or more), or bind 127.0.0.1, or say server.insecure: true if everyone who can connect may be admin.'
  constructor(host: string) {
    super(`server.host ${host} can be reached from other machines, and no token is set`)
    this.name = 'PublicBindError'
  }
}

export class PortInUseError extends GantryError {
  readonly code = 'GANTRY_PORT_IN_USE'
  readonly hint: string
  constructor(address: string, setting: 'httpPort' | 'metricsPort' | 'grpcPort', cause: unknown) {
    super(`${address} is already in use`, { cause })
    this.name = 'PortInUseError'
    this.hint = `Stop the program that listens there (ss -ltnp shows it), or set server.${setting} to another port (0 takes a free one).`
  }
}

export class ListenError extends GantryError {
  readonly code = 'GANTRY_ENVIRONMENT'
  readonly hint: string
  constructor(address: string, cause: unknown) {
    const limit = systemLimit(cause)
    const reason = limit?.reason ?? (cause instanceof Error ? cause.message : String(cause))
    super(`cannot listen on ${address}: ${reason}`, { cause })
    this.name = 'ListenError'
    this.hint =
      limit === undefined || limit.code === 'EACCES'
        ? 'Set server.host to an address of this machine and the ports to ones this user may open.'
        : limit.hint
  }
}
