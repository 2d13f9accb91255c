import { GantryError } from '../errors.js'

/** A video file that cannot be read to its end. */
export class VideoUnreadableError extends GantryError {
  readonly code = 'GANTRY_SOURCE_FAILED'
  readonly hint: string
  override readonly retryable: boolean
  /** @param systemHint - what to do about a limit of the system, where that is the cause: it may be gone the next time. */
  constructor(reason: string, systemHint?: string) {
    super(`video cannot be read: ${reason}`)
    this.name = 'VideoUnreadableError'
    this.hint = systemHint ?? 'See whether the file plays with ffplay.'
    this.retryable = systemHint !== undefined
  }
}
