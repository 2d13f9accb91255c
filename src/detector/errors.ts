import { GantryError } from '../errors.js'

/** No detector head fits the model's outputs. */
export class HeadUnknownError extends GantryError {
  readonly code = 'GANTRY_HEAD_UNKNOWN'
  constructor(
    message: string,
    readonly hint: string,
  ) {
    super(message)
    this.name = 'HeadUnknownError'
  }
}
