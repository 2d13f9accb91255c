import { Metadata, status, type StatusObject } from '@grpc/grpc-js'
import type { Log } from '../../lifecycle/log.js'
import { ServingError, type ServingStatus } from '../../tensors/serving-error.js'
import { ProtoError } from './proto-reader.js'

/** As Triton answers. */
const codes: Readonly<Record<ServingStatus, status>> = {
  INTERNAL: status.INTERNAL,
  NOT_FOUND: status.NOT_FOUND,
  UNAVAILABLE: status.UNAVAILABLE,
  UNSUPPORTED: status.UNIMPLEMENTED,
  INVALID_ARG: status.INVALID_ARGUMENT,
  ALREADY_EXISTS: status.ALREADY_EXISTS,
  CANCELLED: status.CANCELLED,
  UNKNOWN: status.UNKNOWN,
}

const noMetadata = new Metadata()

/** What a client is told of an error. The words of an unforeseen one stay in the log. */
export function grpcStatus(error: unknown, log: Log): StatusObject {
  if (error instanceof ServingError)
    return { code: codes[error.status], details: error.message, metadata: noMetadata }
  if (error instanceof ProtoError)
    return {
      code: status.INTERNAL,
      details: `failed to parse the request: ${error.message}`,
      metadata: noMetadata,
    }
  log.error({ err: error }, 'call of the model server failed')
  return { code: status.INTERNAL, details: 'internal error', metadata: noMetadata }
}
