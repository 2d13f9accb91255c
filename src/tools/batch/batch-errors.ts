import { GantryError } from '../../errors.js'

/** What was named to be scored is not there, or cannot be read. */
export class BatchInputError extends GantryError {
  readonly code = 'GANTRY_BATCH_INPUT'
  constructor(
    message: string,
    readonly hint: string,
    options: Readonly<{ cause?: unknown; retryable?: boolean }> = {},
  ) {
    super(message, { cause: options.cause })
    this.name = 'BatchInputError'
    this.retryable = options.retryable ?? false
  }
  override readonly retryable: boolean
}

/** The output belongs to another run, or to one that is at work. */
export class BatchStateError extends GantryError {
  readonly code = 'GANTRY_BATCH_STATE'
  constructor(
    message: string,
    readonly hint: string,
  ) {
    super(message)
    this.name = 'BatchStateError'
  }
}

/** Something that every picture needs is away, and was for as long as a batch waits. What was done is kept. */
export class BatchStoppedError extends GantryError {
  readonly code = 'GANTRY_BATCH_STOPPED'
  readonly hint: string
  constructor(reason: string, hint: string, cause: unknown) {
    super(`the batch stopped: ${reason}`, { cause })
    this.name = 'BatchStoppedError'
    this.hint = `${hint} The same command goes on where it stopped.`
  }
}
