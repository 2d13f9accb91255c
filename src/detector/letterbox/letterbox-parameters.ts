import { normalisation } from '../detector-plan.js'
import { parseSize } from '../input-size.js'
import { choice } from '../../repository/parameter-choice.js'
import { type ElementType, elementType, type InputPlan, inputLayouts } from '../input-tensor.js'
import { type ModelConfig, parameterOf } from '../../repository/model-config.js'
import type { Datatype } from '../../tensors/element-type.js'

/** What a letterbox writes; the name of the input does not matter to it. */
export type LetterboxPlan = Omit<InputPlan, 'name'>

/**
 * The plan that a folder with `backend: "letterbox"` spells out, or `undefined` where it names no size.
 *
 * @throws ModelConfigError
 */
export function letterboxParameters(model: string, config: ModelConfig): LetterboxPlan | undefined {
  const size = parameterOf(config, 'gantry.input_size')
  if (size === undefined) return undefined
  const normalise = normalisation(model, config)
  return {
    layout: choice(model, config, 'gantry.layout', inputLayouts) ?? 'uint8-nhwc',
    size: parseSize(size, model),
    channels: choice(model, config, 'gantry.color', ['rgb', 'bgr']) ?? 'rgb',
    range: choice(model, config, 'gantry.range', ['0-1', '0-255']) ?? '0-1',
    align: choice(model, config, 'gantry.letterbox', ['center', 'top-left']) ?? 'center',
    ...(normalise === undefined ? {} : { normalise }),
  }
}

const pixelTypes = {
  float32: 'FP32',
  float16: 'FP16',
  float64: 'FP64',
  uint8: 'UINT8',
  int8: 'INT8',
} as const satisfies Record<ElementType, Datatype>

/** Element type of the pixels that a letterbox writes. */
export function pixelType({ layout }: LetterboxPlan): Datatype {
  return pixelTypes[elementType(layout)]
}
