import { conventions, type DetectorModel, planDetector, planPicture } from '../../detector/detector-plan.js'
import { HeadUnknownError } from '../../detector/errors.js'
import type { HeadPlan } from '../../detector/heads/head.js'
import type { InputPlan } from '../../detector/input-tensor.js'
import { ModelInvalidError, ModelLabelsError } from '../../repository/errors.js'
import type { ModelConfig } from '../../repository/model-config.js'
import { type OnnxInfo, readOnnxFile } from '../../repository/onnx-file.js'
import type { OnnxModel } from '../../repository/onnx-model.js'
import type { ModelTensor } from '../../tensors/tensor.js'
import { ModelTransformError } from './transform-error.js'

/** A model between two steps: a file, and the configuration that goes with it. */
export type ModelDraft = Pick<OnnxModel, 'name' | 'path' | 'config' | 'labels' | 'labelsFrom'>

/** How pictures enter a model, and how its detections are read where it gives any. */
export type DraftPlan = Readonly<{
  onnx: OnnxInfo
  /** Of the picture; absent where the model takes none. */
  picture?: Readonly<{ plan: InputPlan; tensor: ModelTensor }>
  detector?: Readonly<{ head: HeadPlan; labels: readonly string[] }>
}>

/** @throws ModelConfigError, ModelInvalidError for a file that cannot be read */
export function planDraft(draft: ModelDraft): DraftPlan {
  const onnx = readOnnxFile(draft.path)
  const limit = draft.config.max_batch_size ?? 0
  const model: DetectorModel = { ...draft, onnx, configuredMaxBatchSize: limit > 0 ? limit : undefined }
  try {
    const { input, head, labels } = planDetector(model)
    return { onnx, picture: withTensor(onnx, input), detector: { head, labels } }
  } catch (error) {
    if (!(
      error instanceof HeadUnknownError ||
      error instanceof ModelLabelsError ||
      error instanceof ModelInvalidError
    ))
      throw error
  }
  try {
    return { onnx, picture: withTensor(onnx, { ...planPicture(model), ...conventions(model, undefined) }) }
  } catch (error) {
    if (error instanceof ModelInvalidError) return { onnx }
    throw error
  }
}

function withTensor({ inputs }: OnnxInfo, plan: InputPlan): NonNullable<DraftPlan['picture']> {
  return { plan, tensor: inputs.find(({ name }) => name === plan.name)! }
}

/** @throws ModelTransformError where the model takes no picture */
export function pictureOf({ picture, onnx }: DraftPlan, step: string): NonNullable<DraftPlan['picture']> {
  if (picture !== undefined) return picture
  throw new ModelTransformError(
    `${step} needs an image input of known size, and the model has ${onnx.inputs.map(({ name, type, shape }) => `"${name}" ${type} [${shape.join(', ')}]`).join(', ')}`,
    'It must be [N, 3, H, W] or [N, H, W, 3]; where the file leaves the size open, set gantry.input_size in config.pbtxt.',
  )
}

/** The configuration with those parameters, and without those that are `undefined`. */
export function withParameters(
  config: ModelConfig,
  changes: Readonly<Record<string, string | undefined>>,
): ModelConfig {
  const parameters: Record<string, Readonly<{ string_value?: string }>> = { ...config.parameters }
  for (const [key, value] of Object.entries(changes)) {
    if (value === undefined) delete parameters[key]
    else parameters[key] = { string_value: value }
  }
  return { ...config, parameters }
}
