import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { ModelConfigError, ModelInvalidError } from '../../repository/errors.js'
import { knownInputs } from '../../repository/match-tensors.js'
import type { ModelConfig } from '../../repository/model-config.js'
import type { OnnxModel } from '../../repository/onnx-model.js'
import { type BorderTensor, valueInfo } from '../../repository/onnx-writer.js'
import { type Comparison, compareStages } from './compare-stages.js'
import { type GraphParts, readGraphParts } from './graph-parts.js'
import { type MeasuredTensor, measureGraph } from './measure-graph.js'
import { planStages, type StagePlan } from './plan-stages.js'
import { ensembleConfig, stageConfig, type StageDevice } from './stage-config.js'
import { writeGraph } from './write-graph.js'

export type SplitOptions = Readonly<{
  stages: number
  /** Repository that gets the stages and the ensemble. */
  outDir: string
  /** GPU of each stage; stages beyond the list begin again with the first. Empty: CPU. */
  gpus: readonly number[]
  /** Random inputs to compare on. */
  runs: number
  /** Largest difference allowed, relative to the largest value of an output. */
  tolerance: number
}>

export type SplitReport = Readonly<{
  ensemble: string
  dir: string
  stages: readonly Readonly<{
    name: string
    nodes: number
    /** Part of the whole model's work, 0..1. */
    share: number
    fileBytes: number
    /** To later stages, per item. */
    crossingBytes: number
    device: string
  }>[]
  comparison: Comparison
}>

/**
 * Cuts a model into stages, writes them with an ensemble that runs them one after another, and compares both on random inputs
 * before anything appears in the repository.
 *
 * @throws ModelInvalidError if it cannot be cut or the stages answer otherwise; ModelConfigError if a folder is there already.
 */
export async function splitModel(given: OnnxModel, options: SplitOptions): Promise<SplitReport> {
  const model = withKnownInputs(given)
  const { outDir, stages } = options
  const names = Array.from({ length: stages }, (_, index) => `${model.name}_stage${index + 1}`)
  const ensemble = `${model.name}_split`
  for (const name of [ensemble, ...names])
    if (existsSync(join(outDir, name)))
      throw new ModelConfigError(
        `${join(outDir, name)} is there already`,
        'Remove it, or choose another --out.',
      )
  const parts = readGraphParts(model.path)
  const tensors = await measureGraph(model.path, parts, model.onnx.inputs)
  const maxBatchSize = model.config.max_batch_size ?? 0
  const plans = planStages(parts, tensors, stages, maxBatchSize > 0)
  mkdirSync(outDir, { recursive: true })
  const draft = mkdtempSync(join(outDir, '.split-'))
  try {
    const files = plans.map((plan, index) =>
      writeStage(model, parts, tensors, plan, join(draft, names[index]!), device(options, index)),
    )
    writeEnsemble(model, ensemble, join(draft, ensemble), plans, names)
    const stageFiles = plans.map((plan, index) => ({ path: files[index]!.path, outputs: plan.outputs }))
    const comparison = await compareStages(
      model.path,
      model.onnx.inputs,
      [...parts.outputs.keys()],
      stageFiles,
      options.runs,
      options.tolerance,
    )
    for (const name of [...names, ensemble]) renameSync(join(draft, name), join(outDir, name))
    return report(ensemble, options, plans, names, files, comparison)
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

/** Sizes that the file leaves open and the configuration does not. */
function withKnownInputs(model: OnnxModel): OnnxModel {
  return { ...model, onnx: { ...model.onnx, inputs: knownInputs(model.config, model.onnx) } }
}

function device({ gpus }: SplitOptions, index: number): StageDevice {
  const gpu = gpus[index % Math.max(1, gpus.length)]
  return gpu === undefined ? { kind: 'KIND_CPU' } : { kind: 'KIND_GPU', gpu }
}

function writeStage(
  model: OnnxModel,
  parts: GraphParts,
  tensors: ReadonlyMap<string, MeasuredTensor>,
  plan: StagePlan,
  dir: string,
  on: StageDevice,
): Readonly<{ path: string; bytes: number }> {
  const border = (name: string) => borderTensor(model, tensors, name)
  const bytes = writeGraph(
    parts,
    plan.nodes,
    plan.inputs.map((name) => parts.inputs.get(name) ?? valueInfo(name, border(name))),
    plan.outputs.map((name) => parts.outputs.get(name) ?? valueInfo(name, border(name))),
  )
  const path = join(dir, '1', 'model.onnx')
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, bytes)
  const needed = new Set(plan.nodes.flatMap((node) => node.inputs))
  const weights = [...parts.weights.values()].filter((weight) => needed.has(weight.name))
  for (const location of new Set(weights.flatMap((weight) => weight.location ?? [])))
    placeBeside(dirname(model.path), dirname(path), location)
  const name = dir.split(/[\\/]/).at(-1)!
  const inputs = plan.inputs.map(border)
  writeFileSync(
    join(dir, 'config.pbtxt'),
    stageConfig(name, model.config, inputs, plan.outputs.map(border), on),
  )
  return { path, bytes: bytes.byteLength }
}

/** Weights in files of their own are shared by hard links where the file system can, as they may be very large. */
function placeBeside(from: string, to: string, location: string): void {
  const target = join(to, location)
  if (!target.startsWith(to))
    throw new ModelInvalidError(
      `weights lie outside of the model's folder: ${location}`,
      'Put them beside the model.',
    )
  mkdirSync(dirname(target), { recursive: true })
  try {
    linkSync(join(from, location), target)
  } catch {
    copyFileSync(join(from, location), target)
  }
}

function borderTensor(
  model: OnnxModel,
  tensors: ReadonlyMap<string, MeasuredTensor>,
  name: string,
): BorderTensor {
  const measured = tensors.get(name)
  if (measured !== undefined) return { name, type: measured.type, shape: measured.shape }
  const input = model.onnx.inputs.find((tensor) => tensor.name === name)
  if (input !== undefined) return input
  throw new ModelInvalidError(`nothing is known of tensor "${name}"`, 'Export the model again.')
}

function writeEnsemble(
  model: OnnxModel,
  name: string,
  dir: string,
  plans: readonly StagePlan[],
  names: readonly string[],
): void {
  mkdirSync(dir, { recursive: true })
  const [first, ...others] = model.config.output
  const labelled: ModelConfig =
    model.labels === undefined || first === undefined
      ? model.config
      : {
          ...model.config,
          output: [{ ...first, label_filename: 'labels.txt' }, ...others.map(withoutLabels)],
        }
  if (model.labels !== undefined) writeFileSync(join(dir, 'labels.txt'), `${model.labels.join('\n')}\n`)
  const stages = plans.map(({ inputs, outputs }, index) => ({ name: names[index]!, inputs, outputs }))
  writeFileSync(join(dir, 'config.pbtxt'), ensembleConfig(name, labelled, stages))
}

function withoutLabels(output: ModelConfig['output'][number]): ModelConfig['output'][number] {
  const { label_filename: _, ...rest } = output
  return rest
}

function report(
  ensemble: string,
  options: SplitOptions,
  plans: readonly StagePlan[],
  names: readonly string[],
  files: readonly Readonly<{ bytes: number }>[],
  comparison: Comparison,
): SplitReport {
  const total = plans.reduce((sum, plan) => sum + plan.work, 0)
  return {
    ensemble,
    dir: options.outDir,
    comparison,
    stages: plans.map((plan, index) => {
      const on = device(options, index)
      return {
        name: names[index]!,
        nodes: plan.nodes.length,
        share: total === 0 ? 0 : plan.work / total,
        fileBytes: files[index]!.bytes,
        crossingBytes: plan.crossingBytes,
        device: on.kind === 'KIND_CPU' ? 'cpu' : `gpu ${on.gpu}`,
      }
    }),
  }
}
