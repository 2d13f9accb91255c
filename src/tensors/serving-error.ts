import { GantryError } from '../errors.js'

/** Status of Triton's API; HTTP and gRPC codes follow from it. */
export type ServingStatus =
  | 'INTERNAL'
  | 'NOT_FOUND'
  | 'UNAVAILABLE'
  | 'UNSUPPORTED'
  | 'INVALID_ARG'
  | 'ALREADY_EXISTS'
  | 'CANCELLED'
  | 'UNKNOWN'

/** How a failed request is counted in `nv_inference_request_failure{reason}`. */
export type FailureReason = 'REJECTED' | 'CANCELED' | 'BACKEND' | 'OTHER'

/** What an API client of the model server is told. The message is Triton's wherever Triton has one: clients match it. */
export class ServingError extends GantryError {
  readonly code = 'GANTRY_MODEL_SERVER'
  readonly hint = 'The message says what the request or the model lacks; see docs/model-server.md.'
  constructor(
    readonly status: ServingStatus,
    message: string,
    readonly reason: FailureReason = 'OTHER',
    cause?: unknown,
  ) {
    super(message, { cause })
    this.name = 'ServingError'
  }
}
