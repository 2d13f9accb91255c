import { readOnnxFile } from '../../repository/onnx-file.js'
import type { ModelConfig, ModelInput, ModelOutput } from '../../repository/model-config.js'
import { configOfOnnx } from '../../tensors/element-type.js'
import type { ModelTensor } from '../../tensors/tensor.js'
import { type DraftPlan, type ModelDraft, withParameters } from './model-draft.js'
import type { TransformStep } from './transform-step.js'

/** Parameters that say how a head is read. */
const headParameters = [
  'gantry.head',
  'gantry.head_outputs',
  'gantry.head_classes',
  'gantry.head_strides',
  'gantry.head_box',
  'gantry.head_unit',
  'gantry.head_first_class',
  'gantry.head_background',
  'gantry.head_activation',
  'gantry.head_scale',
  'gantry.head_zero_point',
  'gantry.head_top_rows',
]

/**
 * The configuration that goes with a model behind a step: its tensors as the file has them, the batch size, and parameters that say what
 * the file no longer tells.
 *
 * @param plan - of the model before the step.
 * @param path - the file behind it.
 */
export function configAfter(
  step: TransformStep,
  draft: ModelDraft,
  plan: DraftPlan,
  path: string,
  maxBatchSize: number,
): ModelDraft {
  const before = withPictureParameters(step, draft.config, plan)
  const { inputs, outputs } = readOnnxFile(path)
  const batch = batchAfter(step, draft.config, inputs, maxBatchSize)
  const changesInput = step.kind === 'fold' || step.kind === 'size' || step.kind === 'batch'
  const { model_warmup: warmUps, dynamic_batching: batching, ...rest } = before
  const known = changesInput ? [] : [...draft.config.input, ...draft.config.output]
  const dimsOf = (tensor: ModelTensor) => dims(tensor, batch, known, draft.config.max_batch_size ?? 0)
  const config: ModelConfig = {
    ...rest,
    // A batch that was given to warm it up has another form.
    model_warmup: changesInput ? [] : warmUps,
    max_batch_size: batch,
    ...(batch > 1 && (batching !== undefined || step.kind === 'batch')
      ? { dynamic_batching: batching ?? { preferred_batch_size: [], priority_queue_policy: {} } }
      : {}),
    input: inputs.map((tensor) => inputEntry(tensor, dimsOf(tensor), draft.config, plan)),
    output: outputs.map((tensor, at) => outputEntry(tensor, dimsOf(tensor), draft.config, at)),
  }
  return { ...draft, path, config }
}

function inputEntry(
  tensor: ModelTensor,
  sizes: readonly number[],
  config: ModelConfig,
  { picture }: DraftPlan,
): ModelInput {
  const before = config.input.find(({ name }) => name === tensor.name)
  const isPicture = tensor.name === picture?.plan.name
  const format = isPicture && sizes.at(-1) === 3 ? 'FORMAT_NHWC' : before?.format
  return {
    name: tensor.name,
    data_type: configOfOnnx(tensor.type),
    ...(format === undefined || (isPicture && sizes.at(-1) !== 3 && format === 'FORMAT_NHWC')
      ? {}
      : { format }),
    dims: sizes,
  }
}

/** The labels stay with the first output where the one that had them is gone. */
function outputEntry(
  tensor: ModelTensor,
  sizes: readonly number[],
  config: ModelConfig,
  at: number,
): ModelOutput {
  const own = config.output.find(({ name }) => name === tensor.name)
  const label = (
    own ?? (at === 0 ? config.output.find(({ label_filename }) => label_filename !== undefined) : undefined)
  )?.label_filename
  return {
    name: tensor.name,
    data_type: configOfOnnx(tensor.type),
    dims: sizes,
    ...(label === undefined ? {} : { label_filename: label }),
  }
}

/** What the file leaves open and the configuration before does not stays as it was, where the step does not change it. */
function dims(
  { name, shape }: ModelTensor,
  batch: number,
  known: readonly (ModelInput | ModelOutput)[],
  batchBefore: number,
): readonly number[] {
  const sizes = (batch > 0 ? shape.slice(1) : shape).map((size) => (typeof size === 'number' ? size : -1))
  const before = known.find((entry) => entry.name === name)?.dims
  const same = before !== undefined && batchBefore > 0 === batch > 0 && before.length === sizes.length
  return same ? sizes.map((size, axis) => (size === -1 ? (before[axis] ?? -1) : size)) : sizes
}

function batchAfter(
  step: TransformStep,
  { max_batch_size: before = 0 }: ModelConfig,
  inputs: readonly ModelTensor[],
  maxBatchSize: number,
): number {
  if (step.kind !== 'batch') return before
  if (step.batch === 'free') return before > 1 ? before : maxBatchSize
  // The batch is one of the dimensions of each tensor then.
  return inputs.some(({ shape }) => typeof shape[0] === 'number') ? 0 : before
}

/** Parameters that the step makes necessary, or untrue. */
function withPictureParameters(
  step: TransformStep,
  config: ModelConfig,
  { picture, detector }: DraftPlan,
): ModelConfig {
  if (picture === undefined) return config
  const { channels, range, align, normalise } = picture.plan
  const numbers = (values: readonly number[] | undefined) => values?.join(',')
  switch (step.kind) {
    case 'fold':
      return withParameters(config, {
        'gantry.color': 'rgb',
        'gantry.range': undefined,
        'gantry.mean': undefined,
        'gantry.std': undefined,
      })
    case 'nms':
      // The kind of the head told how pictures enter.
      return withParameters(config, {
        ...Object.fromEntries(headParameters.map((key) => [key, undefined])),
        'gantry.head': 'end-to-end',
        'gantry.color': channels,
        'gantry.range': range,
        'gantry.letterbox': align,
        'gantry.mean': numbers(normalise?.mean),
        'gantry.std': numbers(normalise?.std),
        'gantry.head_outputs': undefined,
      })
    case 'size':
      return withParameters(config, {
        'gantry.input_size':
          step.size === 'free' ? `${picture.plan.size.widthPx}x${picture.plan.size.heightPx}` : undefined,
        // What told the head may have been the number of its rows.
        ...(detector === undefined ? {} : { 'gantry.head': detector.head.kind }),
      })
    default:
      return config
  }
}
