import { ModelConfigError } from './errors.js'
import { type EnsembleStep, type ModelConfig, parameterOf } from './model-config.js'

/** The model that runs on a GPU in the place of an ensemble's own, by `gantry.gpu_model`. */
export function gpuModelOf(config: ModelConfig): string | undefined {
  return parameterOf(config, 'gantry.gpu_model')
}

/** The same model with weights in float16, by `gantry.float16_model` of the one in float32. */
export function float16ModelOf(config: ModelConfig): string | undefined {
  return parameterOf(config, 'gantry.float16_model')
}

/** What steps are, by their place. */
export type StepKinds = Readonly<{
  /** It runs a model file. */
  runsFile(index: number): boolean
  /** It is a detection head. */
  isHead(index: number): boolean
}>

/**
 * The configuration of an ensemble with its model for GPUs in the place of the one step that runs a model file; of several, of the one
 * that a detection head reads.
 *
 * @throws ModelConfigError if not exactly one does.
 */
export function withGpuModel(
  ensemble: string,
  config: ModelConfig,
  gpuModel: string,
  kinds: StepKinds,
): ModelConfig {
  const { step: steps = [] } = config.ensemble_scheduling ?? {}
  const files = steps.filter((_, index) => kinds.runsFile(index))
  const heads = steps.filter((_, index) => kinds.isHead(index))
  const read = files.filter((file) => heads.some((head) => reads(head, file)))
  const models = files.length > 1 && read.length > 0 ? read : files
  const [model] = models
  if (model === undefined || models.length > 1)
    throw new ModelConfigError(
      `ensemble "${ensemble}": gantry.gpu_model is "${gpuModel}", but ${models.length} steps run a model file`,
      'It takes the place of one step: leave the parameter out where there are none or several.',
    )
  return {
    ...config,
    ensemble_scheduling: {
      ...config.ensemble_scheduling,
      step: steps.map((step) =>
        step === model ? { ...step, model_name: gpuModel, model_version: -1 } : step,
      ),
    },
  }
}

function reads(step: EnsembleStep, from: EnsembleStep): boolean {
  const written = Object.values(from.output_map)
  return Object.values(step.input_map).some((tensor) => written.includes(tensor))
}

/**
 * @param of - what names the other model, and by which parameter: `ensemble "ppe": gantry.gpu_model`.
 * @throws ModelConfigError: records and answers name classes by number, so both models must have the same.
 */
export function checkSameLabels(
  of: string,
  own: Readonly<{ name: string; labels: readonly string[] }>,
  other: Readonly<{ name: string; labels: readonly string[] }>,
): void {
  if (own.labels.join('\n') === other.labels.join('\n')) return
  const list = ({ name, labels }: typeof own) => `"${name}" has ${labels.join(', ') || 'no labels'}`
  throw new ModelConfigError(
    `${of} has other labels: ${list(own)}; ${list(other)}`,
    'Name a model with the same labels in the same order, or leave the parameter out.',
  )
}
