import { GantryError, type ErrorRecord } from '../errors.js'

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

/** A buffer or tensor has another size than its shape says. */
export class TensorShapeError extends GantryError {
  readonly code = 'GANTRY_TENSOR_SHAPE'
  constructor(
    message: string,
    readonly hint = 'This is a fault in Gantry or a model with other shapes than it declares.',
  ) {
    super(message)
    this.name = 'TensorShapeError'
  }
}

/** The worker that had the run ended before answering. */
export class WorkerExitedError extends GantryError {
  readonly code = 'GANTRY_WORKER_EXITED'
  readonly hint = 'The instance is started again by itself; see the log for the reason.'
  override readonly retryable = true
  constructor(
    readonly instance: string,
    readonly exitCode: number | undefined,
    cause?: unknown,
  ) {
    const code = exitCode === undefined ? '' : ` with code ${exitCode}`
    super(
      `inference instance ${instance} ended${code}${cause instanceof Error ? `: ${cause.message}` : ''}`,
      { cause },
    )
    this.name = 'WorkerExitedError'
  }
}

/** A run that has not ended in time. Nothing inside the process can end it, since a native call cannot be interrupted. */
export class RunHungError extends GantryError {
  readonly code = 'GANTRY_INFERENCE_FAILED'
  readonly hint =
    'The process is started again; raise inference.runTimeoutMs if the model really takes that long.'
  constructor(instance: string, forMs: number) {
    super(`a run of inference instance ${instance} has not ended within ${forMs} ms`)
    this.name = 'RunHungError'
  }
}

/** A run that the worker answered with an error. */
export class InferenceFailedError extends GantryError {
  readonly code = 'GANTRY_INFERENCE_FAILED'
  readonly hint: string
  constructor(readonly record: ErrorRecord) {
    super(`inference failed: ${record.message}`)
    this.name = 'InferenceFailedError'
    this.hint = record.hint
  }
}
