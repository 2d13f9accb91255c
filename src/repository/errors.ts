import { GantryError } from '../errors.js'

export class ModelNotFoundError extends GantryError {
  readonly code = 'GANTRY_MODEL_NOT_FOUND'
  constructor(
    message: string,
    readonly hint: string,
  ) {
    super(message)
    this.name = 'ModelNotFoundError'
  }
}

/** A `config.pbtxt` that cannot be read, or asks for something that is not supported. */
export class ModelConfigError extends GantryError {
  readonly code = 'GANTRY_MODEL_CONFIG'
  constructor(
    message: string,
    readonly hint: string,
    cause?: unknown,
  ) {
    super(message, { cause })
    this.name = 'ModelConfigError'
  }
}

/** A model file that cannot be read, or whose tensors are not what is needed. */
export class ModelInvalidError extends GantryError {
  readonly code = 'GANTRY_MODEL_INVALID'
  constructor(
    message: string,
    readonly hint: string,
    cause?: unknown,
  ) {
    super(message, { cause })
    this.name = 'ModelInvalidError'
  }
}

/** Labels that are missing, unreadable, or do not match the classes of the model. */
export class ModelLabelsError extends GantryError {
  readonly code = 'GANTRY_MODEL_LABELS'
  constructor(
    message: string,
    readonly hint: string,
    cause?: unknown,
  ) {
    super(message, { cause })
    this.name = 'ModelLabelsError'
  }
}
