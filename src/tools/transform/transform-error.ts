import { GantryError } from '../../errors.js'

/** A model that cannot be transformed as asked: which node or tensor, and why. Nothing was written. */
export class ModelTransformError extends GantryError {
  readonly code = 'GANTRY_MODEL_TRANSFORM'
  constructor(
    message: string,
    readonly hint: string,
    cause?: unknown,
  ) {
    super(message, { cause })
    this.name = 'ModelTransformError'
  }
}
