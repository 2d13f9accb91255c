import { z } from 'zod'
import { redactText } from '../config/redact.js'
import { errorCodes, GantryError, InternalError, type ErrorCode } from '../errors.js'
import { BadRequestError, HttpError, UnsupportedMediaError, type FieldProblem } from './errors.js'

/** Body of every error of the API, RFC 9457. */
export const problemSchema = z
  .strictObject({
    type: z.string().describe('urn:gantry:problem:<code>, for programs; the same as `code`.'),
    title: z.string().describe('What kind of error this is.'),
    status: z.number().int().min(400).max(599),
    detail: z.string().describe('What happened this time.'),
    code: z.enum(errorCodes).describe('Branch on this.'),
    hint: z.string().describe('What to do about it.'),
    problems: z
      .array(
        z.strictObject({
          path: z.string().describe('Field of the request; empty for the whole.'),
          message: z.string(),
        }),
      )
      .describe('Every field that is wrong; empty where the error is not about a field.'),
  })
  .describe('RFC 9457 problem details.')
export type Problem = Readonly<z.infer<typeof problemSchema>>

export const problemMediaType = 'application/problem+json; charset=utf-8'

const statusByCode: Partial<Record<ErrorCode, number>> = {
  GANTRY_CONFIG: 400,
  GANTRY_UNAUTHORIZED: 401,
  GANTRY_FORBIDDEN: 403,
  GANTRY_NOT_FOUND: 404,
  GANTRY_METHOD_NOT_ALLOWED: 405,
  GANTRY_BAD_REQUEST: 400,
  GANTRY_UNSUPPORTED_MEDIA: 415,
  GANTRY_TOO_LARGE: 413,
  GANTRY_RATE_LIMITED: 429,
  GANTRY_CAMERA_EXISTS: 409,
  GANTRY_CAMERA_NOT_FOUND: 404,
  GANTRY_CAMERA_NOT_PUSH: 409,
  GANTRY_NO_ROOM: 503,
  GANTRY_CAMERA_URL: 400,
  GANTRY_CAMERA_SETTING: 400,
  GANTRY_IMAGE_INVALID: 400,
  GANTRY_CURSOR: 400,
  GANTRY_MODEL_NOT_FOUND: 404,
  GANTRY_QUEUE_FULL: 503,
  GANTRY_WORKER_EXITED: 503,
  GANTRY_DEVICE_FAILED: 503,
  GANTRY_ENGINE_UNAVAILABLE: 503,
  GANTRY_ENSEMBLE_BUSY: 409,
  GANTRY_SOURCE_FAILED: 503,
  GANTRY_SOURCE_SILENT: 503,
  GANTRY_SINK_UNAVAILABLE: 503,
  GANTRY_CACHE_UNAVAILABLE: 503,
  GANTRY_STORE_UNAVAILABLE: 503,
  GANTRY_OBJECT_STORE: 503,
  GANTRY_CLUSTER_UNAVAILABLE: 503,
  GANTRY_CLUSTER_MOVED: 503,
  GANTRY_ENVIRONMENT: 503,
}

const titles: Record<number, string> = {
  400: 'Bad request',
  401: 'Token needed',
  403: 'Refused',
  404: 'Not found',
  405: 'Method not allowed',
  408: 'Request timeout',
  409: 'Conflict',
  413: 'Too large',
  415: 'Unsupported content type',
  426: 'Upgrade required',
  429: 'Too many requests',
  431: 'Headers too large',
  500: 'Internal error',
  503: 'Unavailable',
}

/** Errors of other rooms that are about one field of the request, so that a form can show them beside it. */
const fieldByCode: Partial<Record<ErrorCode, string>> = {
  GANTRY_CAMERA_EXISTS: 'id',
  GANTRY_CAMERA_URL: 'url',
  GANTRY_CURSOR: 'cursor',
}

/** Status, headers and body that tell of an error. Credentials are masked; the words of an internal error stay in the log. */
export function toProblem(
  thrown: unknown,
): Readonly<{ problem: Problem; headers: Readonly<Record<string, string>> }> {
  const error = toGantryError(thrown)
  const own = error instanceof HttpError ? error : undefined
  const status = own?.status ?? statusByCode[error.code] ?? 500
  const detail =
    error.code === 'GANTRY_INTERNAL' ? 'something went wrong inside the service' : redactText(error.message)
  const field = error.field ?? fieldByCode[error.code]
  const problems = own?.problems ?? (field === undefined ? [] : [{ path: field, message: detail }])
  return {
    headers: own?.headers ?? (status === 503 ? { 'retry-after': '2' } : {}),
    problem: {
      type: `urn:gantry:problem:${error.code}`,
      title: titles[status] ?? 'Error',
      status,
      detail,
      code: error.code,
      hint: error.hint,
      problems: problems.map(({ path, message }) => ({ path, message: redactText(message) })),
    },
  }
}

/** A problem in one line, for clients whose errors have no place for a hint. */
export function problemLine({ detail, hint }: Problem): string {
  return `${detail}. ${hint}`
}

/** Fastify's own errors (a body that is no JSON, too large, of another type) as ours. */
function toGantryError(thrown: unknown): GantryError {
  if (thrown instanceof GantryError) return thrown
  const status = field(thrown, 'statusCode')
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  if (status === 415) return new UnsupportedMediaError(undefined, ['application/json'])
  if (typeof status === 'number' && status >= 400 && status < 500)
    return new BadRequestError(message, [], 'Correct the request; /openapi.json has the schema of every one.')
  return new InternalError(message, thrown)
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}

export type { FieldProblem }
