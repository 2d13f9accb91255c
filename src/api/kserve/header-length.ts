import { ServingError } from '../../tensors/serving-error.js'

export const headerLengthName = 'inference-header-content-length'

const title = 'Inference-Header-Content-Length'
const int32 = 2 ** 31

/**
 * Bytes of JSON at the start of a body: the header's value, or the whole body without the header; 0 is a raw request.
 *
 * @throws ServingError `INVALID_ARG` in the words of Triton
 */
export function headerLength(given: string | undefined, bodyBytes: number): number {
  if (given === undefined) return bodyBytes
  const digits = /^\s*([+-]?\d+)\s*$/.exec(given)?.[1]
  if (digits === undefined) throw new ServingError('INVALID_ARG', `Unable to parse ${title}, got: ${given}`)
  const length = Number(digits)
  if (length < -int32 || length >= int32)
    throw new ServingError(
      'INVALID_ARG',
      `Unable to parse ${title}, value is out of range [ ${-int32}, ${int32 - 1} ], got: ${given}`,
    )
  if (length < 0 || length > bodyBytes)
    throw new ServingError(
      'INVALID_ARG',
      `inference header size should be in range (0, ${bodyBytes}), got: ${given}`,
    )
  return length
}
