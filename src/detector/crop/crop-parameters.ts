import { type ModelConfig, parameterOf } from '../../repository/model-config.js'
import { numberParameter } from '../../repository/parameter-choice.js'
import { parseSize } from '../input-size.js'
import { frameElements, type InputPlan } from '../input-tensor.js'
import { pixelType } from '../letterbox/letterbox-parameters.js'
import { elementBytes } from '../../tensors/element-type.js'
import type { SizePx } from '../../vision/letterbox.js'

/** What a crop step writes. */
export type CropPlan = Readonly<{
  /** As the model that reads the crops takes them. */
  form: CropForm
  /** Share of a box's width and height that is added on each side, 0..1. */
  marginShare: number
}>

/** Where a picture would lie in the input does not matter: a crop fills it. */
export type CropForm = Omit<InputPlan, 'name' | 'sizeInput'>

/** @throws ModelConfigError */
export function cropSize(model: string, config: ModelConfig): SizePx | undefined {
  const text = parameterOf(config, 'gantry.crop_size')
  return text === undefined ? undefined : parseSize(text, model, 'gantry.crop_size')
}

/** @throws ModelConfigError */
export function cropMargin(model: string, config: ModelConfig): number {
  return numberParameter(model, config, 'gantry.crop_margin', 0, { min: 0, max: 1 })
}

/** Crops that no model reads: bytes, as a picture has them. */
export function plainForm(size: SizePx): CropForm {
  return { layout: 'uint8-nhwc', size, channels: 'rgb', range: '0-255', align: 'center' }
}

/** Bytes of one crop in the tensor. */
export function cropBytes(form: CropForm): number {
  return frameElements({ ...form, name: '' }) * elementBytes(pixelType(form))
}
