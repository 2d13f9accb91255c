/** Every code an error of Gantry can carry. They cross worker, HTTP, WebSocket and CLI borders unchanged. */
export const errorCodes = [
  'GANTRY_CONFIG',
  'GANTRY_USAGE',
  'GANTRY_ENVIRONMENT',
  'GANTRY_PORT_IN_USE',
  'GANTRY_PUBLIC_BIND',
  'GANTRY_UNAUTHORIZED',
  'GANTRY_FORBIDDEN',
  'GANTRY_NOT_FOUND',
  'GANTRY_METHOD_NOT_ALLOWED',
  'GANTRY_BAD_REQUEST',
  'GANTRY_UNSUPPORTED_MEDIA',
  'GANTRY_TOO_LARGE',
  'GANTRY_RATE_LIMITED',
  'GANTRY_INTERNAL',
  'GANTRY_CAMERA_EXISTS',
  'GANTRY_CAMERA_NOT_FOUND',
  'GANTRY_CAMERA_NOT_PUSH',
  'GANTRY_NO_ROOM',
  'GANTRY_CAMERA_URL',
  'GANTRY_CAMERA_SETTING',
  'GANTRY_SOURCE_FAILED',
  'GANTRY_SOURCE_SILENT',
  'GANTRY_IMAGE_INVALID',
  'GANTRY_LABELS',
  'GANTRY_MODEL_NOT_FOUND',
  'GANTRY_MODEL_CONFIG',
  'GANTRY_MODEL_INVALID',
  'GANTRY_MODEL_LABELS',
  'GANTRY_MODEL_TRANSFORM',
  'GANTRY_HEAD_UNKNOWN',
  'GANTRY_PROVIDER_UNAVAILABLE',
  'GANTRY_PROVIDER_FAILS',
  'GANTRY_PROVIDER_OPTIONS',
  'GANTRY_TENSOR_SHAPE',
  'GANTRY_QUEUE_FULL',
  'GANTRY_WORKER_EXITED',
  'GANTRY_INFERENCE_FAILED',
  'GANTRY_DEVICE_FAILED',
  'GANTRY_DEVICE_UNFIT',
  'GANTRY_ENGINE_UNAVAILABLE',
  'GANTRY_ENSEMBLE_BUSY',
  'GANTRY_SINK_UNAVAILABLE',
  'GANTRY_CACHE_UNAVAILABLE',
  'GANTRY_STORE_UNAVAILABLE',
  'GANTRY_OBJECT_STORE',
  'GANTRY_CLUSTER_UNAVAILABLE',
  'GANTRY_CLUSTER_MOVED',
  'GANTRY_WS_MESSAGE',
  'GANTRY_CURSOR',
  'GANTRY_MODEL_SERVER',
  'GANTRY_SERVER_UNREACHABLE',
  'GANTRY_BATCH_INPUT',
  'GANTRY_BATCH_STATE',
  'GANTRY_BATCH_STOPPED',
  'GANTRY_OPTIMIZE_STATE',
  'GANTRY_OPTIMIZE_LIMITS',
] as const
export type ErrorCode = (typeof errorCodes)[number]

/** Base of every error thrown on purpose. Branch on `code`, show `hint`, never match `message`. */
export abstract class GantryError extends Error {
  abstract readonly code: ErrorCode
  /** One sentence that tells the reader what to do about it. */
  abstract readonly hint: string
  readonly retryable: boolean = false
  /** The field of a request that it is about, where there is one. */
  readonly field: string | undefined = undefined
}

/** An error as it crosses a process or thread border. */
export type ErrorRecord = Readonly<{ code: ErrorCode; message: string; hint: string }>

/** A {@link GantryError} that arrived from another thread or process. */
export class RemoteError extends GantryError {
  readonly code: ErrorCode
  readonly hint: string
  constructor(record: ErrorRecord) {
    super(record.message)
    this.name = 'RemoteError'
    this.code = record.code
    this.hint = record.hint
  }
}

/** Whether an error, or what caused it, is one of ours with that code, also one that arrived from another thread or process. */
export function hasCode(error: unknown, code: ErrorCode): boolean {
  let next = error
  for (let depth = 0; depth < 8 && next instanceof Error; depth += 1) {
    if (next instanceof GantryError && next.code === code) return true
    next = next.cause
  }
  return false
}

/** Something that should not happen; the message is all there is. */
export class InternalError extends GantryError {
  readonly code = 'GANTRY_INTERNAL'
  readonly hint = 'This is a fault in Gantry: report it with the log lines around it.'
  constructor(message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'InternalError'
  }
}

/** Whether it is a fault in here, of which whoever asked is told no more than that. */
export function isInternal(error: unknown): boolean {
  return !(error instanceof GantryError) || error.code === 'GANTRY_INTERNAL'
}

/** Any thrown value as a record that can cross a border. Foreign errors become `GANTRY_INTERNAL`. */
export function toErrorRecord(error: unknown): ErrorRecord {
  if (error instanceof GantryError) return { code: error.code, message: error.message, hint: error.hint }
  const internal = new InternalError(error instanceof Error ? error.message : String(error))
  return { code: internal.code, message: internal.message, hint: internal.hint }
}
