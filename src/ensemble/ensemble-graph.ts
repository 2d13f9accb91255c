import { ModelConfigError } from '../repository/errors.js'
import { readModel, type RepositoryModel } from '../repository/model-definition.js'
import { type OnnxModel, openOnnxModel } from '../repository/onnx-model.js'
import { modelNames, type Repositories } from '../repository/repository-files.js'
import { type BackendName, knownBackend } from '../repository/supported-config.js'
import { knownOutputs } from '../repository/match-tensors.js'
import type { EnsembleStep, ModelConfig, ModelInput, ModelOutput } from '../repository/model-config.js'
import type { ModelTensor } from '../tensors/tensor.js'
import { builtInStepNames, builtInSteps, isBuiltInStep } from './built-in-steps.js'
import { checkGraph, type GraphStep, type GraphTensor } from './graph-check.js'

export type ResolvedStep = Readonly<{
  /** `step[1] (ppe_detect)`, for errors. */
  title: string
  step: EnsembleStep
  backend: BackendName
  /** For steps that run a model file. */
  model: OnnxModel | undefined
  /** For steps with a folder. */
  config: ModelConfig | undefined
  /** Where it stands, whose parameters hold for a built-in step without a folder. */
  ensemble: Readonly<{ name: string; config: ModelConfig }>
}>

/** An ensemble with its steps found and its maps checked. */
export type EnsembleGraph = Readonly<{ name: string; version: string; steps: readonly ResolvedStep[] }>

/**
 * Reads the steps of an ensemble and checks that its tensors fit together.
 *
 * @throws ModelConfigError naming step and tensor; what opening a step's model throws.
 */
export function readEnsemble(repositories: Repositories, entry: RepositoryModel): EnsembleGraph {
  const steps = (entry.config.ensemble_scheduling?.step ?? []).map((step, index) =>
    resolveStep(repositories, entry, step, index),
  )
  const names = (tensors: readonly Readonly<{ name: string }>[]) => tensors.map(({ name }) => ({ name }))
  checkGraph(
    { name: entry.name, inputs: names(entry.config.input), outputs: names(entry.config.output) },
    steps.map(graphStep),
  )
  return { name: entry.name, version: String(entry.versions.at(-1) ?? 1), steps }
}

function resolveStep(
  repositories: Repositories,
  entry: RepositoryModel,
  step: EnsembleStep,
  index: number,
): ResolvedStep {
  const title = `step[${index}] (${step.model_name || 'no model_name'})`
  const names = modelNames(repositories)
  if (!names.includes(step.model_name)) {
    if (isBuiltInStep(step.model_name))
      return { title, step, backend: step.model_name, model: undefined, config: undefined, ensemble: entry }
    return fail(
      entry.name,
      `${title} is not in the repository`,
      `It has: ${names.join(', ')}; built in are: ${builtInStepNames.join(', ')}.`,
    )
  }
  const model = readModel(repositories, step.model_name, 'server')
  const version = step.model_version === undefined || step.model_version === 0 ? -1 : step.model_version
  return {
    title,
    step,
    backend: knownBackend(model.config, model.folder.configFile),
    model: model.backend === 'onnxruntime' ? openOnnxModel(model, version) : undefined,
    config: model.config,
    ensemble: entry,
  }
}

/** Tensors of a step, as far as they can be told without running it. */
function graphStep({ title, step, backend, model, config }: ResolvedStep): GraphStep {
  const maps = { title, inputMap: step.input_map, outputMap: step.output_map }
  if (model !== undefined)
    return {
      ...maps,
      inputs: model.onnx.inputs.map((tensor) => graphTensor(tensor, model.config)),
      outputs: knownOutputs(model.config, model.onnx).map((tensor) => graphTensor(tensor, model.config)),
    }
  if (isBuiltInStep(backend)) return { ...maps, ...builtInSteps[backend] }
  const named = (tensors: readonly (ModelInput | ModelOutput)[] = []) => tensors.map(({ name }) => ({ name }))
  const isOpen = config === undefined || config.output.length === 0
  return {
    ...maps,
    inputs: named(config?.input),
    outputs: named(config?.output),
    ...(isOpen ? { takesAny: true, givesAny: true } : {}),
  }
}

/** The letterbox of cameras writes whatever the detector reads, so only names and sizes behind the detector matter here. */
function graphTensor({ name, shape }: ModelTensor, { max_batch_size: most = 0 }: ModelConfig): GraphTensor {
  return { name, shape: shape.map((size) => (typeof size === 'number' ? size : -1)), batched: most > 0 }
}

function fail(ensemble: string, problem: string, hint: string): never {
  throw new ModelConfigError(`ensemble "${ensemble}": ${problem}`, hint)
}
