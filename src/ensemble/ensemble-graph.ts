import { ModelConfigError } from '../inference/errors.js'
import type { EnsembleStep } from '../inference/model-config.js'
import {
  type ModelEntry,
  modelNames,
  openOnnxModel,
  type OnnxModel,
  readModelEntry,
} from '../inference/model-repository.js'
import type { Backend } from '../inference/supported-config.js'
import { builtInSteps, hasTensor } from './built-in-steps.js'

export type ResolvedStep = Readonly<{
  /** `step[1] (ppe_detect)`, for errors. */
  title: string
  step: EnsembleStep
  backend: Backend
  /** For steps that run a model file. */
  model: OnnxModel | undefined
}>

/** An ensemble with its steps found and its maps checked. */
export type EnsembleGraph = Readonly<{ name: string; version: string; steps: readonly ResolvedStep[] }>

/**
 * Reads the steps of an ensemble and checks that its tensors fit together.
 *
 * @throws ModelConfigError naming step and tensor; what opening a step's model throws.
 */
export function readEnsemble(repositoryDir: string, entry: ModelEntry): EnsembleGraph {
  const steps = (entry.config.ensemble_scheduling?.step ?? []).map((step, index) =>
    resolveStep(repositoryDir, entry, step, index),
  )
  if (steps.length === 0) fail(entry.name, 'it has no ensemble_scheduling steps', 'Add at least one step.')
  checkMaps(entry, steps)
  return { name: entry.name, version: String(entry.versions.at(-1) ?? 1), steps }
}

function resolveStep(
  repositoryDir: string,
  entry: ModelEntry,
  step: EnsembleStep,
  index: number,
): ResolvedStep {
  const title = `step[${index}] (${step.model_name || 'no model_name'})`
  const builtIn = (['letterbox', 'detection_head'] as const).find((name) => name === step.model_name)
  const names = modelNames(repositoryDir)
  if (!names.includes(step.model_name)) {
    if (builtIn !== undefined) return { title, step, backend: builtIn, model: undefined }
    return fail(
      entry.name,
      `${title} is not in the repository`,
      `It has: ${names.join(', ')}; built in are: letterbox, detection_head.`,
    )
  }
  const model = readModelEntry(repositoryDir, step.model_name)
  if (model.backend === 'ensemble')
    fail(entry.name, `${title} is itself an ensemble`, 'Name its steps here instead.')
  const version = step.model_version === undefined || step.model_version === 0 ? -1 : step.model_version
  return {
    title,
    step,
    backend: model.backend,
    model: model.backend === 'onnxruntime' ? openOnnxModel(model, version) : undefined,
  }
}

function checkMaps(entry: ModelEntry, steps: readonly ResolvedStep[]): void {
  const producedBy = new Map(entry.config.input.map((input) => [input.name, 'an input of the ensemble']))
  for (const { title, step, backend, model } of steps) {
    const outputs = model?.onnx.outputs.map((tensor) => tensor.name) ?? builtInSteps[backend]?.outputs ?? []
    for (const [tensor, name] of Object.entries(step.output_map)) {
      if (!hasTensor(outputs, tensor))
        fail(entry.name, `${title} has no output "${tensor}"`, `Its outputs are: ${outputs.join(', ')}.`)
      const other = producedBy.get(name)
      if (other !== undefined)
        fail(entry.name, `"${name}" is written by ${title} and is already ${other}`, 'Give it another name.')
      producedBy.set(name, `an output of ${title}`)
    }
  }
  const known = [...producedBy.keys()].join(', ')
  for (const { title, step, backend, model } of steps) {
    const inputs = model?.onnx.inputs.map((tensor) => tensor.name) ?? builtInSteps[backend]?.inputs ?? []
    for (const [tensor, name] of Object.entries(step.input_map)) {
      if (!hasTensor(inputs, tensor))
        fail(entry.name, `${title} has no input "${tensor}"`, `Its inputs are: ${inputs.join(', ')}.`)
      if (!producedBy.has(name))
        fail(entry.name, `${title} reads "${name}", which nothing writes`, `There are: ${known}.`)
    }
    const missing = inputs.filter((input) => input !== '*' && !(input in step.input_map))
    if (missing.length > 0)
      fail(entry.name, `${title} is not given its input "${missing.join('", "')}"`, 'Add it to input_map.')
  }
  for (const output of entry.config.output)
    if (!producedBy.has(output.name))
      fail(entry.name, `no step writes the output "${output.name}"`, `There are: ${known}.`)
}

function fail(ensemble: string, problem: string, hint: string): never {
  throw new ModelConfigError(`ensemble "${ensemble}": ${problem}`, hint)
}
