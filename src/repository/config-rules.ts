import { metricLabel } from './config-faults/metric-faults.js'
import { type ModelConfig, parameterOf, type QueuePolicy } from './model-config.js'
import { isCudaParameter, shrinkageParameter } from './provider-options.js'

/** Of the parameters of the ONNX Runtime backend, those that nothing follows. */
function isUnknown(key: string): boolean {
  return /^(memory\.|arena_|cudnn_)/.test(key) && !isCudaParameter(key) && key !== shrinkageParameter
}

/** Labels of metrics that the server sets itself. */
const serverLabels = ['model', 'version', 'le']

/** Whether a policy speaks of a time-out that there is not. */
function isWithoutTimeout(policy: QueuePolicy): boolean {
  return (
    (policy.default_timeout_microseconds ?? 0) === 0 &&
    (policy.timeout_action === 'DELAY' || policy.allow_timeout_override === true)
  )
}

/** Who runs the model: the detectors of cameras, or the model server for API clients. They follow different fields. */
export type Audience = 'cameras' | 'server'

/** A field of a configuration, and why it cannot be followed: by anybody, or by one audience only. */
export type Rule = Readonly<{
  field: string
  isSet: (config: ModelConfig) => boolean
  why: string
  only?: Audience
}>

/** Fields that change what the model computes or who may call it: running without them would be wrong. */
export const refused: readonly Rule[] = [
  {
    field: 'sequence_batching',
    isSet: (c) => c.sequence_batching !== undefined,
    why: 'frames of cameras are not sequences of requests',
    only: 'cameras',
  },
  {
    field: 'sequence_batching.iterative_sequence',
    isSet: (c) => c.sequence_batching?.iterative_sequence === true,
    why: 'requests are not scheduled again by the model',
  },
  {
    field: 'sequence_batching.state.use_growable_memory',
    isSet: (c) => c.sequence_batching?.state.some((state) => state.use_growable_memory === true) === true,
    why: 'growable memory belongs to TensorRT plans',
  },
  {
    field: 'ensemble_scheduling.step.model_namespace',
    isSet: (c) => c.ensemble_scheduling?.step.some((step) => (step.model_namespace ?? '') !== '') === true,
    why: 'models have no namespaces',
  },
  {
    field: 'instance_group, optimization or model_warmup of an ensemble',
    isSet: (c) =>
      c.ensemble_scheduling !== undefined &&
      (c.instance_group.length > 0 || c.optimization !== undefined || c.model_warmup.length > 0),
    why: 'an ensemble has no instances; set it on the models of its steps',
  },
  {
    field: 'gantry.gpu_model',
    isSet: (c) => c.ensemble_scheduling === undefined && parameterOf(c, 'gantry.gpu_model') !== undefined,
    why: 'it belongs to the ensemble whose model is another one on a GPU',
  },
  {
    field: 'gantry.float16_model',
    isSet: (c) =>
      parameterOf(c, 'gantry.float16_model') !== undefined &&
      (c.ensemble_scheduling !== undefined || !['', 'onnxruntime'].includes(c.backend ?? '')),
    why: 'it belongs to the detector in float32, of backend onnxruntime',
  },
  {
    field: 'gantry.attributes, gantry.attribute_labels, gantry.attribute_activation',
    isSet: (c) =>
      c.ensemble_scheduling === undefined &&
      Object.keys(c.parameters).some((key) => key.startsWith('gantry.attribute')),
    why: 'they belong to the ensemble whose outputs become attributes',
  },
  {
    field: 'gantry.files_of',
    isSet: (c) =>
      parameterOf(c, 'gantry.files_of') !== undefined &&
      (c.ensemble_scheduling !== undefined || !['', 'onnxruntime'].includes(c.backend ?? '')),
    why: 'only backend onnxruntime has model files',
  },
  {
    field: 'input.format',
    isSet: (c) =>
      c.input.some(({ format = 'FORMAT_NONE', dims }) => format !== 'FORMAT_NONE' && dims.length !== 3),
    why: 'NHWC and NCHW require 3 dims',
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
    why: 'frames enter a detector in the shape that it has',
    only: 'cameras',
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
export const ignored: readonly Rule[] = [
  { field: 'runtime', isSet: (c) => (c.runtime ?? '') !== '', why: 'there is one runtime per backend' },
  {
    field: 'cc_model_filenames',
    isSet: (c) => Object.keys(c.cc_model_filenames).length > 0,
    why: 'one file serves every device',
  },
  {
    field: 'response_cache',
    isSet: (c) => c.response_cache?.enable === true,
    why: 'pictures of cameras hardly ever repeat bit by bit',
    only: 'cameras',
  },
  {
    field: 'sequence_batching.oldest.preserve_ordering',
    isSet: (c) => c.sequence_batching?.oldest?.preserve_ordering === true,
    why: 'the order within a sequence is kept always, and between sequences there is none',
    only: 'server',
  },
  {
    field: 'sequence_batching.state.use_same_buffer_for_input_output',
    isSet: (c) =>
      c.sequence_batching?.state.some((state) => state.use_same_buffer_for_input_output === true) === true,
    why: 'a state has a buffer of its own',
    only: 'server',
  },
  {
    field: 'ensemble_scheduling.max_inflight_requests',
    isSet: (c) => (c.ensemble_scheduling?.max_inflight_requests ?? 0) > 0,
    why: 'each camera has one waiting frame',
    only: 'cameras',
  },
  {
    field: 'default_model_filename',
    isSet: (c) =>
      (c.default_model_filename ?? '') !== '' &&
      (c.ensemble_scheduling !== undefined || !['', 'onnxruntime', 'js'].includes(c.backend ?? '')),
    why: 'it has no model file',
  },
  {
    field: 'allow_timeout_override and timeout_action DELAY without default_timeout_microseconds',
    isSet: ({ dynamic_batching: batching }) =>
      [batching?.default_queue_policy ?? {}, ...Object.values(batching?.priority_queue_policy ?? {})].some(
        isWithoutTimeout,
      ),
    why: 'there is no time-out',
    only: 'server',
  },
  {
    field: 'max_queue_delay_microseconds of a model with max_batch_size 0',
    isSet: ({ max_batch_size: size, dynamic_batching: batching, sequence_batching: sequences }) =>
      size === 0 &&
      [batching, sequences?.oldest].some((each) => (each?.max_queue_delay_microseconds ?? 0) > 0),
    why: 'there are no batches to wait for',
    only: 'server',
  },
  {
    field: 'sequence_batching.direct',
    isSet: ({ sequence_batching: sequences }) => {
      const { max_queue_delay_microseconds: delay = 0, minimum_slot_utilization: share = 0 } =
        sequences?.direct ?? {}
      return delay > 0 !== share > 0
    },
    why: 'a batch waits only where both max_queue_delay_microseconds and minimum_slot_utilization are set',
    only: 'server',
  },
  {
    field: 'metric_tags of model, version or le',
    isSet: (c) => Object.keys(c.metric_tags).some((tag) => serverLabels.includes(metricLabel(tag))),
    why: 'the server sets these labels itself',
  },
  {
    field: 'gantry.kserve_*',
    isSet: (c) =>
      c.backend !== 'kserve' && Object.keys(c.parameters).some((key) => key.startsWith('gantry.kserve_')),
    why: 'it belongs to backend kserve',
  },
  {
    field: 'gantry.crop_size, gantry.crop_margin',
    isSet: (c) =>
      c.backend !== 'crop' &&
      c.ensemble_scheduling === undefined &&
      Object.keys(c.parameters).some((key) => key.startsWith('gantry.crop_')),
    why: 'they belong to backend crop, or to the ensemble with a crop step',
  },
  {
    field: 'gantry.timeout_ms',
    isSet: (c) => c.backend !== 'js' && parameterOf(c, 'gantry.timeout_ms') !== undefined,
    why: 'it belongs to backend js',
  },
  { field: 'model_metrics', isSet: (c) => c.model_metrics !== undefined, why: 'buckets are fixed' },
  {
    field: 'optimization.cuda beside graphs',
    isSet: (c) =>
      Object.entries(c.optimization?.cuda ?? {}).some(
        ([key, value]) =>
          key !== 'graphs' && value !== false && !(Array.isArray(value) && value.length === 0),
      ),
    why: 'it belongs to TensorRT plans',
  },
  {
    field: 'optimization.priority',
    isSet: (c) => (c.optimization?.priority ?? 'PRIORITY_DEFAULT') !== 'PRIORITY_DEFAULT',
    why: 'it belongs to TensorRT plans',
  },
  {
    field: 'optimization memory and batching hints',
    isSet: ({ optimization: o }) =>
      o?.input_pinned_memory !== undefined ||
      o?.output_pinned_memory !== undefined ||
      (o?.gather_kernel_buffer_threshold ?? 0) > 0 ||
      o?.eager_batching === true,
    why: 'they belong to TensorRT plans',
  },
  {
    field: 'dynamic_batching settings',
    isSet: ({ dynamic_batching: batching }) =>
      batching !== undefined &&
      Object.values(batching).some((value) =>
        value instanceof Object ? Object.keys(value).length > 0 : value !== false,
      ),
    why: 'batches of cameras are formed by inference.maxBatchSize and inference.maxQueueDelayMs',
    only: 'cameras',
  },
  {
    field: 'dynamic_batching.priority_queue_policy and default_priority_level without priority_levels',
    isSet: ({ dynamic_batching: batching }) =>
      batching !== undefined &&
      (batching.priority_levels ?? 0) === 0 &&
      (Object.keys(batching.priority_queue_policy).length > 0 || (batching.default_priority_level ?? 0) > 0),
    why: 'there is one queue, and default_queue_policy is its policy',
    only: 'server',
  },
  {
    field: 'instance_group.kind KIND_MODEL',
    isSet: (c) => c.instance_group.some(({ kind }) => kind === 'KIND_MODEL'),
    why: 'no backend chooses its device itself',
  },
  {
    field: 'instance_group.kind KIND_GPU',
    isSet: (c) =>
      !['', 'onnxruntime'].includes(c.backend ?? '') &&
      c.instance_group.some(({ kind, gpus }) => kind === 'KIND_GPU' || gpus.length > 0),
    why: 'only backend onnxruntime runs on a GPU',
  },
  {
    field: 'parameters of the ONNX Runtime backend for memory',
    isSet: (c) => Object.keys(c.parameters).some(isUnknown),
    why: 'ONNX Runtime has none of that name',
  },
  {
    field: 'optimization.execution_accelerators beside cuda and tensorrt',
    isSet: ({ optimization }) => {
      const given = optimization?.execution_accelerators
      const names = (given?.gpu_execution_accelerator ?? []).map(({ name }) => name)
      return (
        (given?.cpu_execution_accelerator.length ?? 0) > 0 ||
        names.some((name) => name === 'auto_mixed_precision' || name === 'gpu_io')
      )
    },
    why: 'ONNX Runtime has none of that name',
  },
  {
    field: 'optimization.execution_accelerators and optimization.cuda of other backends',
    isSet: (c) =>
      !['', 'onnxruntime'].includes(c.backend ?? '') &&
      (c.optimization?.execution_accelerators !== undefined || c.optimization?.cuda !== undefined),
    why: 'only backend onnxruntime runs on a GPU',
  },
  {
    field: 'instance_group.rate_limiter',
    isSet: (c) => c.instance_group.some((group) => group.rate_limiter !== undefined),
    why: 'instances for cameras are not rate limited',
    only: 'cameras',
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
