import { GantryError } from '../errors.js'

/** The command line is not understood. */
export class UsageError extends GantryError {
  readonly code = 'GANTRY_USAGE'
  constructor(
    message: string,
    readonly hint: string,
  ) {
    super(message)
    this.name = 'UsageError'
  }
}
