import { status } from '@grpc/grpc-js'
import { ServingError, type ServingStatus } from '../../tensors/serving-error.js'
import type { KserveSettings } from './kserve-settings.js'

const statuses: Readonly<Partial<Record<status, ServingStatus>>> = {
  [status.INVALID_ARGUMENT]: 'INVALID_ARG',
  [status.NOT_FOUND]: 'NOT_FOUND',
  [status.UNAVAILABLE]: 'UNAVAILABLE',
  [status.DEADLINE_EXCEEDED]: 'UNAVAILABLE',
  [status.RESOURCE_EXHAUSTED]: 'UNAVAILABLE',
  [status.UNIMPLEMENTED]: 'UNSUPPORTED',
  [status.CANCELLED]: 'CANCELLED',
}

/** The gRPC status of a failed call, `undefined` for other errors. */
export function grpcCode(error: unknown): status | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'number' ? error.code : undefined
}

/** What a caller is told of a call that failed elsewhere. */
export function remoteError(address: string, model: string, error: unknown): ServingError {
  if (error instanceof ServingError) return error
  const code = grpcCode(error)
  const details =
    error instanceof Error && 'details' in error && typeof error.details === 'string'
      ? error.details
      : error instanceof Error
        ? error.message
        : String(error)
  const reason = code === status.CANCELLED ? 'CANCELED' : 'BACKEND'
  const known = code === undefined ? undefined : statuses[code]
  return new ServingError(
    known ?? 'INTERNAL',
    `remote model '${model}' at ${address}: ${details}`,
    reason,
    error,
  )
}

/** Names, shapes and parameters of a message, beside its tensors. */
const besideTensorsBytes = 1024 ** 2

/** Most bytes that a message of a remote server may have; -1 for any. */
export function answerLimit({ maxResponseBytes }: Pick<KserveSettings, 'maxResponseBytes'>): number {
  return Number.isFinite(maxResponseBytes) ? maxResponseBytes + besideTensorsBytes : -1
}

/**
 * Whether the library refused an answer for our limit, and the size of it where that is told: `undefined` for other errors. A server that
 * refuses what it was sent uses the same words, with a limit of its own.
 */
export function isBeyond(
  settings: Pick<KserveSettings, 'maxResponseBytes'>,
  error: unknown,
): Readonly<{ bytes: number | undefined }> | undefined {
  if (grpcCode(error) !== status.RESOURCE_EXHAUSTED) return undefined
  const { details } = error as { details?: string }
  const limit = answerLimit(settings)
  const [, bytes] = new RegExp(`larger than max \\((\\d+) vs ${limit}\\)$`).exec(details ?? '') ?? []
  if (bytes !== undefined) return { bytes: Number(bytes) }
  return details?.endsWith(`decompresses to a size larger than ${limit}`) === true
    ? { bytes: undefined }
    : undefined
}

/** What a caller is told of an answer that is larger than a response may be. @param bytes - of it, as far as they are known. */
export function tooLargeError(
  { name, model, maxResponseBytes }: Pick<KserveSettings, 'name' | 'model' | 'maxResponseBytes'>,
  bytes: number | undefined,
): ServingError {
  const size = bytes === undefined ? '' : `${bytes} bytes, `
  return new ServingError(
    'INVALID_ARG',
    `outputs of model '${name}' have ${size}more than the ${maxResponseBytes} of a response (modelServer.maxResponseBytes): remote model '${model}' answered with them`,
  )
}
