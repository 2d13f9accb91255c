import { GantryError } from '../../errors.js'

/** Python, or a package for it, is not to be had here. */
export class PythonError extends GantryError {
  readonly code = 'GANTRY_ENVIRONMENT'
  constructor(
    message: string,
    readonly hint: string,
  ) {
    super(message)
    this.name = 'PythonError'
  }
}
