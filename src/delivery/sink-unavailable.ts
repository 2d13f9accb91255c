import { GantryError } from '../errors.js'

/** What takes the records cannot be reached, or does not take them now. */
export class SinkUnavailableError extends GantryError {
  readonly code = 'GANTRY_SINK_UNAVAILABLE'
  override readonly retryable = true
  /**
   * @param sink - its name.
   * @param retryAfterMs - how long the far side wants to be left alone, where it says so.
   */
  constructor(
    readonly sink: string,
    readonly reason: string,
    readonly hint: string,
    cause?: unknown,
    readonly retryAfterMs?: number,
  ) {
    super(`${sink}: ${reason}`, { cause })
    this.name = 'SinkUnavailableError'
  }
}

/** A hint as the end of a sentence. */
export function uncapitalised(text: string): string {
  return text.replace(/\.$/, '').replace(/^./, (first) => first.toLowerCase())
}
