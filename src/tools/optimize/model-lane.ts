import { GantryError } from '../../errors.js'
import { nowMs } from '../../lifecycle/clock.js'
import type { InferRequest } from '../../runtime/infer.js'
import type { LoadedModel } from '../../runtime/loaded-model.js'
import type { Tensor } from '../../tensors/tensor.js'
import type { InferLane, LaneOutcome } from '../client/infer-lane.js'

/** A run of a model in a trial fails. */
export class TrialRunError extends GantryError {
  readonly code = 'GANTRY_INFERENCE_FAILED'
  readonly hint = 'The configuration is left out; `gantry models inspect` shows what the model takes.'
  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
    this.name = 'TrialRunError'
  }
}

/** The way to a model in this process: the same scheduler and instances that serve it, without a network before them. */
export class ModelLane implements InferLane<readonly Tensor[]> {
  constructor(readonly model: LoadedModel) {}

  send(inputs: readonly Tensor[], _keep: boolean, done: (outcome: LaneOutcome) => void): void {
    const sentMs = nowMs()
    const ended = (error: GantryError | undefined): void => {
      const receivedMs = nowMs()
      done({ sentMs, writtenMs: sentMs, firstByteMs: receivedMs, receivedMs, error, answer: undefined })
    }
    this.model.infer({ ...request, model: this.model.name, inputs }).then(
      () => ended(undefined),
      (error: unknown) => ended(new TrialRunError(error)),
    )
  }

  close(): void {
    // The model is stopped as a whole.
  }
}

const request: Omit<InferRequest, 'model' | 'inputs'> = {
  version: '',
  id: '',
  outputs: [],
  priority: 0,
  timeoutUs: 0,
  sequence: undefined,
  parameters: {},
  signal: undefined,
}
