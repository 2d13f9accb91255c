import { GantryError, type ErrorRecord } from '../errors.js'

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

/** A GPU failed in a way that sticks: every run on it fails until the process ends, since its context is the process's. */
export class DeviceFailedError extends GantryError {
  readonly code = 'GANTRY_DEVICE_FAILED'
  readonly hint = 'The process is started again by itself; dmesg has the Xid errors of the driver.'
  override readonly retryable = true
  constructor(reason: string, cause?: unknown) {
    super(reason, { cause })
    this.name = 'DeviceFailedError'
  }
}

/** A GPU lacks what a model computes with: it will never run it. */
export class DeviceUnfitError extends GantryError {
  readonly code = 'GANTRY_DEVICE_UNFIT'
  readonly hint =
    'Use the float32 model there (gantry.gpu_model of an ensemble names it), or run this one on the CPU (KIND_CPU).'
  constructor(reason: string, cause?: unknown) {
    super(reason, { cause })
    this.name = 'DeviceUnfitError'
  }
}

/** What a thread says of a GPU that failed so, in the error of a load or a run; `undefined` for any other. */
export function deviceFailureIn(error: unknown): ErrorRecord | undefined {
  const record =
    error instanceof InferenceFailedError ? error.record : error instanceof GantryError ? error : undefined
  if (record?.code !== 'GANTRY_DEVICE_FAILED') return undefined
  const { code, message, hint } = record
  return { code, message, hint }
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
