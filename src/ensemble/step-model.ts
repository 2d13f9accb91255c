import { ModelConfigError } from '../repository/errors.js'
import type { LoadedModel } from '../runtime/loaded-model.js'
import { ServingError } from '../tensors/serving-error.js'
import type { TensorSpec } from '../tensors/tensor.js'

/** What runs a step. */
export type StepModel = Readonly<{
  /** `step[1] (ppe_detect)`, for errors. */
  title: string
  inputs: readonly TensorSpec[]
  outputs: readonly TensorSpec[]
  maxBatchSize: number
  /** Outputs with a row for each box that was found. */
  rowsPerBox: readonly string[]
  labels(output: string): readonly string[]
  /** The model that takes a request now; it may be another one than a moment ago. @throws ServingError if none does */
  current(): LoadedModel
}>

/** A step that is ready to run: where its inputs come from, where its outputs go, and what runs it. */
export type PlannedStep = Readonly<{
  title: string
  /** As the ensemble names its model. */
  name: string
  /** Name of the step's tensor -> name of the ensemble's. */
  inputs: readonly (readonly [own: string, tensor: string])[]
  outputs: readonly (readonly [own: string, tensor: string])[]
  model: StepModel
}>

/** Finds the version of a model that serves; -1 is the highest one. */
export type FindModel = (name: string, version: number) => LoadedModel | undefined

/** A step whose model is looked up for each request, so that a newer version takes over at once. */
export function sharedStep(title: string, model: LoadedModel, version: number, find: FindModel): StepModel {
  const { name } = model
  return {
    ...described(title, model),
    current: () => {
      const found = find(name, version)
      if (found !== undefined) return found
      throw new ServingError('UNAVAILABLE', `Request for unknown model: '${name}' has no available versions`)
    },
  }
}

/** A step that belongs to its ensemble alone. @param labels - of the detector before it, unless it has its own. */
export function ownStep(title: string, model: LoadedModel, labels: readonly string[]): StepModel {
  return {
    ...described(title, model),
    labels: (output) => {
      const own = model.labels(output)
      return own.length > 0 ? own : labels
    },
    current: () => model,
  }
}

function described(title: string, model: LoadedModel): Omit<StepModel, 'current'> {
  return {
    title,
    inputs: model.inputs,
    outputs: model.outputs,
    maxBatchSize: model.config.max_batch_size ?? 0,
    rowsPerBox: rowsPerBoxOf(model),
    labels: (output) => model.labels(output),
  }
}

function rowsPerBoxOf({ platform, rowsPerBox = [] }: LoadedModel): readonly string[] {
  if (platform === 'detection_head') return ['detections']
  return platform === 'crop' ? ['crops'] : rowsPerBox
}

/** A step that names a model which does not serve. */
export function missingStep(ensemble: string, title: string, name: string): ModelConfigError {
  return new ModelConfigError(
    `ensemble "${ensemble}": ${title} needs model "${name}", which is not loaded`,
    'Put the model into the repository, or load it first.',
  )
}
