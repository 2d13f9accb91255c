import type { ServingStatus } from '../../tensors/serving-error.js'

/** As Triton answers. */
export const httpStatus: Readonly<Record<ServingStatus, number>> = {
  INTERNAL: 500,
  NOT_FOUND: 404,
  UNAVAILABLE: 503,
  UNSUPPORTED: 501,
  INVALID_ARG: 400,
  ALREADY_EXISTS: 400,
  CANCELLED: 400,
  UNKNOWN: 400,
}
