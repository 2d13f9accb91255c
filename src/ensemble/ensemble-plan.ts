import { boxRowsOf } from './box-rows.js'
import { checkGraph, type GraphStep, type GraphTensor } from './graph-check.js'
import { ModelConfigError } from '../repository/errors.js'
import type { ModelConfig } from '../repository/model-config.js'
import { configOfDatatype } from '../tensors/element-type.js'
import type { TensorSpec } from '../tensors/tensor.js'
import { specsOf } from '../backends/config-tensors.js'
import type { PlannedStep, StepModel } from './step-model.js'

/** A checked ensemble. */
export type EnsemblePlan = Readonly<{
  inputs: readonly TensorSpec[]
  outputs: readonly TensorSpec[]
  /** Each after those it reads from. */
  steps: readonly PlannedStep[]
  /** Steps by the tensor they write. */
  writers: ReadonlyMap<string, PlannedStep>
  /** How many steps read a tensor, and once more if it is an output. */
  readers: ReadonlyMap<string, number>
  /** Tensors with a row for each box of the picture; none where an ensemble takes several pictures at once. */
  boxRows: ReadonlySet<string>
}>

/**
 * Checks an ensemble against the models of its steps.
 *
 * @param models - of the steps, in their order.
 * @param boxInputs - inputs with a row for each box: the detector has run before.
 * @throws ModelConfigError naming step and tensor.
 */
export function planEnsemble(
  name: string,
  config: ModelConfig,
  models: readonly StepModel[],
  boxInputs: readonly string[] = [],
): EnsemblePlan {
  const inputs = specsOf(config, config.input)
  const outputs = specsOf(config, config.output)
  checkBatchSizes(name, config, models)
  const steps = (config.ensemble_scheduling?.step ?? []).map((step, index): GraphStep => {
    const model = models[index]!
    return {
      title: model.title,
      inputMap: step.input_map,
      outputMap: step.output_map,
      inputs: model.inputs.map(graphTensor),
      outputs: model.outputs.map(graphTensor),
    }
  })
  const order = checkGraph(
    { name, inputs: inputs.map(graphTensor), outputs: outputs.map(graphTensor) },
    steps,
  )
  const planned = order.map((index): PlannedStep => {
    const { title, inputMap, outputMap } = steps[index]!
    return {
      title,
      name: config.ensemble_scheduling?.step[index]?.model_name ?? '',
      inputs: Object.entries(inputMap),
      outputs: Object.entries(outputMap),
      model: models[index]!,
    }
  })
  return {
    inputs,
    outputs,
    steps: planned,
    writers: writersOf(planned),
    readers: readersOf(planned, outputs),
    boxRows: (config.max_batch_size ?? 0) > 0 ? new Set() : boxRowsOf(planned, boxInputs),
  }
}

function graphTensor({ name, datatype, shape, optional }: TensorSpec): GraphTensor {
  return {
    name,
    dataType: configOfDatatype(datatype),
    shape,
    ...(optional === true ? { optional } : {}),
  }
}

/** A batch of the ensemble must fit into every step. */
function checkBatchSizes(name: string, config: ModelConfig, models: readonly StepModel[]): void {
  const most = config.max_batch_size ?? 0
  if (most === 0) return
  const narrow = models.find((model) => model.maxBatchSize < most)
  if (narrow === undefined) return
  throw new ModelConfigError(
    `ensemble "${name}" allows maximum batch size ${most}, but ${narrow.title} allows ${narrow.maxBatchSize}`,
    'Lower max_batch_size of the ensemble, or raise that of the model.',
  )
}

function writersOf(steps: readonly PlannedStep[]): ReadonlyMap<string, PlannedStep> {
  return new Map(steps.flatMap((step) => step.outputs.map(([, tensor]) => [tensor, step] as const)))
}

function readersOf(
  steps: readonly PlannedStep[],
  outputs: readonly TensorSpec[],
): ReadonlyMap<string, number> {
  const readers = new Map<string, number>()
  const add = (tensor: string) => readers.set(tensor, (readers.get(tensor) ?? 0) + 1)
  for (const step of steps) for (const [, tensor] of step.inputs) add(tensor)
  for (const output of outputs) add(output.name)
  return readers
}
