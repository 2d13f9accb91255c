import { batchSizeFaults } from './config-faults/batching-faults.js'
import { configFaults, faultText } from './config-faults/config-faults.js'
import { warmupFaults } from './config-faults/model-faults.js'
import { ModelConfigError } from './errors.js'
import { type Audience, ignored, refused, type Rule } from './config-rules.js'
import { gantryParameters, type ModelConfig } from './model-config.js'

/** What runs a model. Only `onnxruntime` and `js` need a file in the version folder. */
export const backends = [
  'onnxruntime',
  'ensemble',
  'image_decode',
  'letterbox',
  'detection_head',
  'crop',
  'kserve',
  'js',
] as const
export type Backend = (typeof backends)[number]

/**
 * The backend a configuration names; without one, ONNX Runtime.
 *
 * @throws ModelConfigError for a backend or platform that is not supported.
 */
export function backendOf(config: ModelConfig, file: string): Backend {
  const { platform = '', backend = '' } = config
  if (platform === 'ensemble' || config.ensemble_scheduling !== undefined) return 'ensemble'
  if (backend !== '') {
    const known = backends.find((name) => name === backend)
    if (known !== undefined) return known
    throw new ModelConfigError(
      `${file}: backend "${backend}" is not supported`,
      `Use one of: ${backends.join(', ')}.`,
    )
  }
  if (platform === '' || platform === 'onnxruntime_onnx') return 'onnxruntime'
  throw new ModelConfigError(
    `${file}: platform "${platform}" is not supported`,
    'Export the model to ONNX and use platform "onnxruntime_onnx", or leave the platform out.',
  )
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
