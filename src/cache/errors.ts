import { GantryError } from '../errors.js'

/** The cache cannot be asked right now; the live path does not depend on it. */
export class CacheUnavailableError extends GantryError {
  readonly code = 'GANTRY_CACHE_UNAVAILABLE'
  readonly hint =
    'Check that Redis runs and cache.redis points to it; results stay live on the stream meanwhile.'
  override readonly retryable = true
  constructor(reason: string, cause?: unknown) {
    super(`result cache is not available: ${reason}`, { cause })
    this.name = 'CacheUnavailableError'
  }
}

/** A page cursor that this cache did not give. */
export class CursorError extends GantryError {
  readonly code = 'GANTRY_CURSOR'
  readonly hint = 'Pass nextCursor of the page before unchanged, or leave the cursor out.'
  constructor() {
    super('the cursor is not one of this service')
    this.name = 'CursorError'
  }
}
