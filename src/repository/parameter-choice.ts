import { ModelConfigError } from './errors.js'
import { type GantryParameter, type ModelConfig, parameterOf } from './model-config.js'

/** A parameter that is one of a few words, `undefined` where it is absent. @throws ModelConfigError for another word. */
export function choice<T extends string>(
  model: string,
  config: ModelConfig,
  key: GantryParameter,
  values: readonly T[],
): T | undefined {
  const text = parameterOf(config, key)
  const value = values.find((known) => known === text)
  if (text !== undefined && value === undefined)
    throw new ModelConfigError(
      `model "${model}": parameter ${key} is "${text}"`,
      `Use one of: ${values.join(', ')}.`,
    )
  return value
}

/** A parameter that is a number in a range, `fallback` where it is absent. @throws ModelConfigError for anything else. */
export function numberParameter(
  model: string,
  config: ModelConfig,
  key: GantryParameter,
  fallback: number,
  { min, max }: Readonly<{ min: number; max: number }>,
): number {
  const text = parameterOf(config, key)
  if (text === undefined) return fallback
  const value = Number(text)
  if (text.trim() !== '' && value >= min && value <= max) return value
  throw new ModelConfigError(
    `model "${model}": parameter ${key} is "${text}"`,
    `Use a number from ${min} to ${max}.`,
  )
}
