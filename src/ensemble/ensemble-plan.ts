import { boxRowsOf } from './box-rows.js'
import { checkGraph, type GraphStep, type GraphTensor } from './graph-check.js'
import { ModelConfigError } from '../repository/errors.js'
import type { ModelConfig, ModelInput, ModelOutput } from '../repository/model-config.js'
import { configOfDatatype } from '../tensors/element-type.js'
import type { TensorSpec } from '../tensors/tensor.js'
import { specsOf } from '../backends/config-tensors.js'
import type { PlannedStep, StepModel } from './step-model.js'

/** A checked ensemble. */
export type EnsemblePlan = Readonly<{
  /** Whether requests have a batch dimension; steps may have one where others have none. */
  batched: boolean
  inputs: readonly TensorSpec[]
  outputs: readonly TensorSpec[]
  /** As steps give them: with `reshape`, in its shapes. */
  given: readonly TensorSpec[]
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
  const batched = (config.max_batch_size ?? 0) > 0
  const inputs = specsOf(config, config.input)
  const outputs = specsOf(config, config.output)
  const taken = specsOf(config, config.input.map(asReshaped))
  const given = specsOf(config, config.output.map(asReshaped))
  checkBatchSizes(name, config, models)
  const steps = (config.ensemble_scheduling?.step ?? []).map((step, index): GraphStep => {
    const model = models[index]!
    return {
      title: model.title,
      inputMap: step.input_map,
      outputMap: step.output_map,
      inputs: model.inputs.map((tensor) => graphTensor(tensor, model.maxBatchSize > 0)),
      outputs: model.outputs.map((tensor) => graphTensor(tensor, model.maxBatchSize > 0)),
    }
  })
  const order = checkGraph(
    {
      name,
      inputs: taken.map((tensor) => graphTensor(tensor, batched)),
      outputs: given.map((tensor) => graphTensor(tensor, batched)),
    },
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
    batched,
    inputs,
    outputs,
    given,
    steps: planned,
    writers: writersOf(planned),
    readers: readersOf(planned, outputs),
    boxRows: batched ? new Set() : boxRowsOf(planned, boxInputs),
  }
}

function asReshaped<T extends ModelInput | ModelOutput>(tensor: T): T {
  return tensor.reshape === undefined ? tensor : { ...tensor, dims: tensor.reshape.shape }
}

function graphTensor({ name, datatype, shape, optional }: TensorSpec, batched: boolean): GraphTensor {
  return {
    name,
    dataType: configOfDatatype(datatype),
    shape,
    batched,
    ...(optional === true ? { optional } : {}),
  }
}

/** A batch of the ensemble must fit into every step that takes batches; the others get it as one tensor. */
function checkBatchSizes(name: string, config: ModelConfig, models: readonly StepModel[]): void {
  const most = config.max_batch_size ?? 0
  if (most === 0) return
  const narrow = models.find(({ maxBatchSize }) => maxBatchSize > 0 && maxBatchSize < most)
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
