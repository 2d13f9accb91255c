import { type DetectorModel, planHead } from '../detector-plan.js'
import { parseSize } from '../input-size.js'
import type { DetectionLimits } from '../frame-reader.js'
import { type HeadPlan, outputsOf } from '../heads/head.js'
import { numberParameter } from '../../repository/parameter-choice.js'
import type { SizePx } from '../../vision/letterbox.js'
import { type ModelConfig, parameterOf } from '../../repository/model-config.js'
import { modelTensorOf, type TensorSpec } from '../../tensors/tensor.js'
import { specsOf } from '../../backends/config-tensors.js'

/** How a detection head reads the outputs of its detector. */
export type HeadBinding = Readonly<{
  plan: HeadPlan
  /** Size of the pictures that the detector takes. */
  input: SizePx
  /** The head's own inputs, in the order of the plan's outputs. */
  inputs: readonly TensorSpec[]
  labels: readonly string[]
}>

/**
 * The binding that a folder with `backend: "detection_head"` spells out by its inputs and `gantry.input_size`, or `undefined` where
 * it has none: the ensemble that uses it then takes all of it from the detector.
 *
 * @throws HeadUnknownError, ModelConfigError
 */
export function headParameters(
  name: string,
  config: ModelConfig,
  labels: readonly string[],
): HeadBinding | undefined {
  const size = parameterOf(config, 'gantry.input_size')
  const specs = specsOf(config, config.input).filter((spec) => spec.name !== 'geometry')
  if (size === undefined || specs.length === 0) return undefined
  const input = parseSize(size, name)
  const model: DetectorModel = {
    name,
    config,
    configuredMaxBatchSize: undefined,
    labels: labels.length === 0 ? undefined : labels,
    labelsFrom: 'label_filename',
    onnx: { inputs: [], outputs: specs.map(modelTensorOf), metadata: {} },
  }
  const plan = planHead(model, input)
  const inputs = outputsOf(plan).flatMap((output) => specs.filter((spec) => spec.name === output))
  return { plan, input, inputs, labels }
}

/** Say what counts as a detection. */
export const limitParameters = [
  'gantry.score_threshold',
  'gantry.iou_threshold',
  'gantry.max_detections',
] as const

/** What counts as a detection where nothing else is said. */
const usualLimits: DetectionLimits = { scoreThreshold: 0.3, iouThreshold: 0.5, maxDetections: 300 }

/**
 * What counts as a detection, by the parameters of a detection head or of its ensemble.
 *
 * @param otherwise - without parameters; for cameras, what the pipeline file says.
 * @throws ModelConfigError
 */
export function detectionLimits(
  name: string,
  config: ModelConfig,
  otherwise: DetectionLimits = usualLimits,
): DetectionLimits {
  const share = { min: 0, max: 1 }
  return {
    scoreThreshold: numberParameter(name, config, 'gantry.score_threshold', otherwise.scoreThreshold, share),
    iouThreshold: numberParameter(name, config, 'gantry.iou_threshold', otherwise.iouThreshold, share),
    maxDetections: Math.round(
      numberParameter(name, config, 'gantry.max_detections', otherwise.maxDetections, {
        min: 1,
        max: 10_000,
      }),
    ),
  }
}
