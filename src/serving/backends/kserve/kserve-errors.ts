import { status } from '@grpc/grpc-js'
import { ServingError, type ServingStatus } from '../../serving-error.js'

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
