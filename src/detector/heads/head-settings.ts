import { ModelConfigError } from '../../repository/errors.js'
import { type GantryParameter, type ModelConfig, parameterOf } from '../../repository/model-config.js'
import type { Quantisation } from '../head-values.js'
import { choice, numberParameter } from '../../repository/parameter-choice.js'
import { activations, backgrounds, boxForms, boxUnits, gridDecodings, type HeadOptions } from './head.js'

/** What a configuration spells out of a head; the rest is recognised. */
export type HeadSettings = Readonly<{
  kind: string | undefined
  /** In the order the kind reads them. */
  outputs: readonly string[] | undefined
  classes: number | undefined
  strides: readonly number[] | undefined
  options: Partial<HeadOptions>
  quantised: readonly Quantisation[] | undefined
  /** Most rows of a frame that a GPU hands over; 0: all. */
  topRows: number | undefined
}>

export const noHeadSettings: HeadSettings = {
  kind: undefined,
  outputs: undefined,
  classes: undefined,
  strides: undefined,
  options: {},
  quantised: undefined,
  topRows: undefined,
}

/** Reads the `gantry.head*` parameters. @throws ModelConfigError naming the parameter */
export function headSettings(model: string, config: ModelConfig): HeadSettings {
  const word = <T extends string>(key: GantryParameter, values: readonly T[]) =>
    choice(model, config, key, values)
  const numbers = (key: GantryParameter) => numberList(model, config, key)
  const number = (key: GantryParameter, max: number, min = 0) =>
    parameterOf(config, key) === undefined ? undefined : numberParameter(model, config, key, 0, { min, max })
  const whole = (key: GantryParameter, max: number, min = 0) => {
    const value = number(key, max, min)
    if (value === undefined || Number.isInteger(value)) return value
    throw new ModelConfigError(`model "${model}": parameter ${key} is "${value}"`, 'Write a whole number.')
  }
  return {
    kind: parameterOf(config, 'gantry.head'),
    outputs: parameterOf(config, 'gantry.head_outputs')
      ?.split(',')
      .map((name) => name.trim()),
    classes: whole('gantry.head_classes', 65_535),
    strides: numbers('gantry.head_strides'),
    options: defined({
      box: word('gantry.head_box', boxForms),
      unit: word('gantry.head_unit', boxUnits),
      firstClass: whole('gantry.head_first_class', 65_535, -1),
      background: word('gantry.head_background', backgrounds),
      activation: word('gantry.head_activation', activations),
      regMax: whole('gantry.head_reg_max', 255),
      offset: number('gantry.head_offset', 1),
      anchors: numbers('gantry.head_anchors'),
      decoding: word('gantry.head_decoding', gridDecodings),
    }),
    quantised: quantisation(model, numbers('gantry.head_scale'), numbers('gantry.head_zero_point')),
    topRows: whole('gantry.head_top_rows', 100_000),
  }
}

function quantisation(
  model: string,
  scales: readonly number[] | undefined,
  zeroPoints: readonly number[] | undefined,
): readonly Quantisation[] | undefined {
  if (scales === undefined) return undefined
  if (zeroPoints !== undefined && zeroPoints.length !== scales.length)
    throw new ModelConfigError(
      `model "${model}": gantry.head_scale has ${scales.length} numbers, but gantry.head_zero_point has ${zeroPoints.length}`,
      'Give one of each for every output of the head, in its order.',
    )
  return scales.map((scale, index) => ({ scale, zeroPoint: zeroPoints?.[index] ?? 0 }))
}

/** A parameter that is a list of numbers, `undefined` where it is absent. @throws ModelConfigError */
export function numberList(
  model: string,
  config: ModelConfig,
  key: GantryParameter,
): readonly number[] | undefined {
  const text = parameterOf(config, key)
  if (text === undefined) return undefined
  const numbers = text.split(',').map((part) => (part.trim() === '' ? Number.NaN : Number(part)))
  if (numbers.every(Number.isFinite)) return numbers
  throw new ModelConfigError(
    `model "${model}": parameter ${key} is "${text}"`,
    'Write numbers with commas between them, like "8,16,32".',
  )
}

function defined(options: { [K in keyof HeadOptions]?: HeadOptions[K] | undefined }): Partial<HeadOptions> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
}
