import { batchSizeFaults } from './config-faults/batching-faults.js'
import { configFaults, faultText } from './config-faults/config-faults.js'
import { warmupFaults } from './config-faults/model-faults.js'
import { ModelConfigError } from './errors.js'
import { type Audience, ignored, refused, type Rule } from './config-rules.js'
import { gantryParameters, type ModelConfig } from './model-config.js'

/** What comes with Gantry. The model server looks into its own list, once it loads a model. */
export const backendNames = [
  'onnxruntime',
  'ensemble',
  'image_decode',
  'letterbox',
  'detection_head',
  'crop',
  'kserve',
  'js',
] as const
export type BackendName = (typeof backendNames)[number]

/** The backend a configuration asks for; ONNX Runtime where it asks for none. */
export function backendOf({ platform = '', backend = '', ensemble_scheduling }: ModelConfig): string {
  if (platform === 'ensemble' || ensemble_scheduling !== undefined) return 'ensemble'
  if (backend !== '') return backend
  return platform === '' || platform === 'onnxruntime_onnx' ? 'onnxruntime' : platform
}

/**
 * Checks that every field of a configuration means what it says, and that none would be passed over in silence.
 *
 * @param config - with the name of the model.
 * @returns one sentence for each field that is read and has no effect.
 * @throws ModelConfigError for what contradicts itself, and for fields without which the model would answer wrongly: all of them.
 */
export function checkSupported(
  config: ModelConfig,
  file: string,
  audience: Audience = 'cameras',
): readonly string[] {
  const applies = (rule: Rule) => (rule.only ?? audience) === audience && rule.isSet(config)
  const problems = refused.filter(applies).map((rule) => `${rule.field}: ${rule.why}`)
  const unsupported = problems.length === 0 ? [] : [`asks for what is not supported: ${problems.join('; ')}`]
  const faults = configFaults(config)
  if (faults.length > 0) throw faulty(file, [faultText(faults), ...unsupported].join('. It '))
  if (problems.length > 0)
    throw new ModelConfigError(
      `${file} ${unsupported.join('')}`,
      'Remove the field, or serve this model with another server.',
    )
  checkParameters(config, file)
  return ignored.filter(applies).map((rule) => `${rule.field} has no effect: ${rule.why}`)
}

/**
 * Checks batches and warm-ups once the largest batch and the inputs are known, which may come from the model file or from another server.
 *
 * @param source - named in errors.
 * @throws ModelConfigError
 */
export function checkCompleted(config: ModelConfig, source: string): void {
  const faults = [...batchSizeFaults(config), ...warmupFaults(config)]
  if (faults.length > 0) throw faulty(source, faultText(faults))
}

function faulty(source: string, text: string): ModelConfigError {
  return new ModelConfigError(
    `${source}: ${text}`,
    'Correct the fields that are named; docs/models.md has what each may hold.',
  )
}

/** The backend that a configuration asks for, where it comes with Gantry. @throws ModelConfigError */
export function knownBackend(config: ModelConfig, file: string): BackendName {
  const { platform = '', backend = '' } = config
  const asked = backendOf(config)
  const known = backendNames.find((name) => name === asked)
  if (known !== undefined && (backend !== '' || platform !== known || known === 'ensemble')) return known
  if (backend !== '')
    throw new ModelConfigError(
      `${file}: backend "${backend}" is not supported`,
      `Use one of: ${backendNames.join(', ')}.`,
    )
  throw new ModelConfigError(
    `${file}: platform "${platform}" is not supported`,
    'Export the model to ONNX and use platform "onnxruntime_onnx", or leave the platform out.',
  )
}

/** Parameters are free text in Triton; a misspelt one of ours, or one without a value, would do nothing in silence. */
function checkParameters(config: ModelConfig, file: string): void {
  const own = Object.entries(config.parameters).filter(([key]) => key.startsWith('gantry.'))
  const unknown = own.map(([key]) => key).filter((key) => !gantryParameters.some((known) => known === key))
  if (unknown.length > 0)
    throw new ModelConfigError(
      `${file}: parameter "${unknown.join('", "')}" is not known`,
      `Parameters of Gantry are: ${gantryParameters.join(', ')}.`,
    )
  const empty = own.filter(([, { string_value = '' }]) => string_value === '').map(([key]) => key)
  if (empty.length > 0)
    throw new ModelConfigError(
      `${file}: parameter "${empty.join('", "')}" has no value`,
      'Write value { string_value: "..." }, or leave the parameter out.',
    )
}
