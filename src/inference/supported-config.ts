import { ModelConfigError } from './errors.js'
import type { ModelConfig } from './model-config.js'

/** What runs a model. The last two are built in and need no model file. */
export const backends = ['onnxruntime', 'ensemble', 'letterbox', 'detection_head'] as const
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

type Rule = Readonly<{ field: string; isSet: (config: ModelConfig) => boolean; why: string }>

/** Fields that change what the model computes or who may call it: running without them would be wrong. */
const refused: readonly Rule[] = [
  {
    field: 'sequence_batching',
    isSet: (c) => c.sequence_batching !== undefined,
    why: 'sequences are not supported yet',
  },
  {
    field: 'batch_input',
    isSet: (c) => c.batch_input.length > 0,
    why: 'inputs computed from a batch are not supported',
  },
  {
    field: 'batch_output',
    isSet: (c) => c.batch_output.length > 0,
    why: 'scattered outputs are not supported',
  },
  {
    field: 'input.reshape / output.reshape',
    isSet: (c) => [...c.input, ...c.output].some((tensor) => tensor.reshape !== undefined),
    why: 'reshaping at the border of a model is not supported yet',
  },
  {
    field: 'is_shape_tensor',
    isSet: (c) => [...c.input, ...c.output].some((tensor) => tensor.is_shape_tensor === true),
    why: 'shape tensors belong to TensorRT plans',
  },
  {
    field: 'is_non_linear_format_io',
    isSet: (c) => [...c.input, ...c.output].some((tensor) => tensor.is_non_linear_format_io === true),
    why: 'non-linear tensor formats belong to TensorRT plans',
  },
  {
    field: 'input.allow_ragged_batch',
    isSet: (c) => c.input.some((tensor) => tensor.allow_ragged_batch === true),
    why: 'ragged batches are not supported',
  },
  {
    field: 'model_operations.op_library_filename',
    isSet: (c) => (c.model_operations?.op_library_filename.length ?? 0) > 0,
    why: 'custom operator libraries are not loaded',
  },
  {
    field: 'model_transaction_policy.decoupled',
    isSet: (c) => c.model_transaction_policy?.decoupled === true,
    why: 'models that answer a request more than once are not supported',
  },
  {
    field: 'model_repository_agents',
    isSet: (c) => (c.model_repository_agents?.agents.length ?? 0) > 0,
    why: 'repository agents are not supported',
  },
  {
    field: 'instance_group.secondary_devices',
    isSet: (c) => c.instance_group.some((group) => group.secondary_devices.length > 0),
    why: 'secondary devices are not supported',
  },
]

/** Fields that only tune: the model is right without them, and the reader is told. */
const ignored: readonly Rule[] = [
  { field: 'runtime', isSet: (c) => (c.runtime ?? '') !== '', why: 'there is one runtime per backend' },
  {
    field: 'cc_model_filenames',
    isSet: (c) => Object.keys(c.cc_model_filenames).length > 0,
    why: 'one file serves every device',
  },
  {
    field: 'model_warmup',
    isSet: (c) => c.model_warmup.length > 0,
    why: 'every instance warms up with zeros',
  },
  {
    field: 'response_cache',
    isSet: (c) => c.response_cache?.enable === true,
    why: 'there is no response cache yet',
  },
  { field: 'model_metrics', isSet: (c) => c.model_metrics !== undefined, why: 'buckets are fixed' },
  {
    field: 'optimization.cuda',
    isSet: (c) => c.optimization?.cuda !== undefined,
    why: 'it belongs to TensorRT plans',
  },
  {
    field: 'optimization.priority',
    isSet: (c) => c.optimization?.priority !== undefined,
    why: 'it belongs to TensorRT plans',
  },
  {
    field: 'optimization.execution_accelerators',
    isSet: (c) => c.optimization?.execution_accelerators !== undefined,
    why: 'the order of execution providers is set by inference.providers',
  },
  {
    field: 'instance_group.rate_limiter',
    isSet: (c) => c.instance_group.some((group) => group.rate_limiter !== undefined),
    why: 'instances are not rate limited',
  },
  {
    field: 'instance_group.host_policy',
    isSet: (c) => c.instance_group.some((group) => (group.host_policy ?? '') !== ''),
    why: 'instances are not bound to a NUMA node',
  },
  {
    field: 'instance_group.profile',
    isSet: (c) => c.instance_group.some((group) => group.profile.length > 0),
    why: 'it belongs to TensorRT plans',
  },
]

/**
 * Checks that nothing in a configuration would be passed over in silence.
 *
 * @returns one sentence for each field that is read and has no effect.
 * @throws ModelConfigError for fields without which the model would answer wrongly.
 */
export function checkSupported(config: ModelConfig, file: string): readonly string[] {
  const problems = refused.filter((rule) => rule.isSet(config)).map((rule) => `${rule.field}: ${rule.why}`)
  if (problems.length > 0)
    throw new ModelConfigError(
      `${file} asks for what is not supported: ${problems.join('; ')}`,
      'Remove the field, or serve this model with another server.',
    )
  return ignored
    .filter((rule) => rule.isSet(config))
    .map((rule) => `${rule.field} has no effect: ${rule.why}`)
}
