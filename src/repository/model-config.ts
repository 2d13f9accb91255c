import type { ConfigType } from '../tensors/element-type.js'

/** `dims` are without the batch dimension when `max_batch_size > 0`; -1 is any size. */
export type ModelInput = Readonly<{
  name: string
  data_type: ConfigType
  format?: 'FORMAT_NONE' | 'FORMAT_NHWC' | 'FORMAT_NCHW'
  dims: readonly number[]
  reshape?: Readonly<{ shape: readonly number[] }>
  is_shape_tensor?: boolean
  allow_ragged_batch?: boolean
  optional?: boolean
  is_non_linear_format_io?: boolean
}>

export type ModelOutput = Readonly<{
  name: string
  data_type: ConfigType
  dims: readonly number[]
  label_filename?: string
  reshape?: Readonly<{ shape: readonly number[] }>
  is_shape_tensor?: boolean
  is_non_linear_format_io?: boolean
}>

/** What a run of an instance needs; `global` is of the server, else each device has its own. */
export type RateLimiterConfig = Readonly<{
  resources: readonly Readonly<{ name?: string; global?: boolean; count?: number }>[]
  priority?: number
}>

export type ModelInstanceGroup = Readonly<{
  name?: string
  kind?: 'KIND_AUTO' | 'KIND_GPU' | 'KIND_CPU' | 'KIND_MODEL'
  count?: number
  gpus: readonly number[]
  profile: readonly string[]
  rate_limiter?: RateLimiterConfig
  passive?: boolean
  secondary_devices: readonly unknown[]
  host_policy?: string
}>

/** `timeout_action` is REJECT where it is absent; 0 is no time-out and no limit. */
export type QueuePolicy = Readonly<{
  timeout_action?: 'REJECT' | 'DELAY'
  default_timeout_microseconds?: number
  allow_timeout_override?: boolean
  max_queue_size?: number
}>

export type DynamicBatching = Readonly<{
  preferred_batch_size: readonly number[]
  max_queue_delay_microseconds?: number
  preserve_ordering?: boolean
  priority_levels?: number
  default_priority_level?: number
  default_queue_policy?: QueuePolicy
  /** By level, in decimal. */
  priority_queue_policy: Readonly<Record<string, QueuePolicy>>
}>

export type ControlKind =
  'CONTROL_SEQUENCE_START' | 'CONTROL_SEQUENCE_READY' | 'CONTROL_SEQUENCE_END' | 'CONTROL_SEQUENCE_CORRID'

/** `kind` is START where it is absent. One of the `false_true` pairs is filled, but for CORRID, which has a `data_type`. */
export type SequenceControl = Readonly<{
  kind?: ControlKind
  int32_false_true: readonly number[]
  fp32_false_true: readonly number[]
  bool_false_true: readonly boolean[]
  data_type?: ConfigType
}>

export type SequenceState = Readonly<{
  input_name: string
  output_name: string
  data_type: ConfigType
  dims: readonly number[]
  initial_state: readonly Readonly<{
    name?: string
    data_type?: ConfigType
    dims: readonly number[]
    zero_data?: boolean
    data_file?: string
  }>[]
  use_same_buffer_for_input_output?: boolean
  use_growable_memory?: boolean
}>

/** Neither `direct` nor `oldest` means `direct`. */
export type SequenceBatching = Readonly<{
  max_sequence_idle_microseconds?: number
  control_input: readonly Readonly<{ name: string; control: readonly SequenceControl[] }>[]
  direct?: Readonly<{ max_queue_delay_microseconds?: number; minimum_slot_utilization?: number }>
  oldest?: Readonly<{
    max_candidate_sequences?: number
    preferred_batch_size: readonly number[]
    max_queue_delay_microseconds?: number
    preserve_ordering?: boolean
  }>
  state: readonly SequenceState[]
  iterative_sequence?: boolean
}>

/** `count` 0 or absent is 1, `batch_size` 0 or absent is 1. `dims` leave the batch dimension out. */
export type ModelWarmup = Readonly<{
  name?: string
  batch_size?: number
  inputs: Readonly<
    Record<
      string,
      Readonly<{
        data_type?: ConfigType
        dims: readonly number[]
        zero_data?: boolean
        random_data?: boolean
        input_data_file?: string
      }>
    >
  >
  count?: number
}>

/** Maps go from the name of the step's tensor to the name of the ensemble's tensor. */
export type EnsembleStep = Readonly<{
  model_name: string
  model_version?: number
  input_map: Readonly<Record<string, string>>
  output_map: Readonly<Record<string, string>>
  model_namespace?: string
}>

export type VersionPolicy = Readonly<{
  latest?: Readonly<{ num_versions?: number }>
  all?: Readonly<Record<string, never>>
  specific?: Readonly<{ versions: readonly number[] }>
}>

export type ExecutionAccelerator = Readonly<{ name?: string; parameters: Readonly<Record<string, string>> }>

export type MetricControl = Readonly<{
  metric_identifier?: Readonly<{ family?: string }>
  histogram_options?: Readonly<{ buckets: readonly number[] }>
}>

/** `ModelConfig` of the Triton schema, with the names of the schema. What a file leaves out is absent or empty. */
export type ModelConfig = Readonly<{
  name?: string
  platform?: string
  backend?: string
  runtime?: string
  version_policy?: VersionPolicy
  max_batch_size?: number
  input: readonly ModelInput[]
  output: readonly ModelOutput[]
  batch_input: readonly unknown[]
  batch_output: readonly unknown[]
  optimization?: Readonly<{
    graph?: Readonly<{ level?: number }>
    priority?: string
    cuda?: Readonly<{
      graphs?: boolean
      busy_wait_events?: boolean
      graph_spec: readonly unknown[]
      output_copy_stream?: boolean
    }>
    execution_accelerators?: Readonly<{
      gpu_execution_accelerator: readonly ExecutionAccelerator[]
      cpu_execution_accelerator: readonly ExecutionAccelerator[]
    }>
    input_pinned_memory?: unknown
    output_pinned_memory?: unknown
    gather_kernel_buffer_threshold?: number
    eager_batching?: boolean
  }>
  dynamic_batching?: DynamicBatching
  sequence_batching?: SequenceBatching
  ensemble_scheduling?: Readonly<{ step: readonly EnsembleStep[]; max_inflight_requests?: number }>
  instance_group: readonly ModelInstanceGroup[]
  default_model_filename?: string
  cc_model_filenames: Readonly<Record<string, string>>
  metric_tags: Readonly<Record<string, string>>
  parameters: Readonly<Record<string, Readonly<{ string_value?: string }>>>
  model_warmup: readonly ModelWarmup[]
  model_operations?: Readonly<{ op_library_filename: readonly string[] }>
  model_transaction_policy?: Readonly<{ decoupled?: boolean }>
  model_repository_agents?: Readonly<{ agents: readonly unknown[] }>
  response_cache?: Readonly<{ enable?: boolean }>
  model_metrics?: Readonly<{ metric_control: readonly MetricControl[] }>
}>

/** A configuration that says nothing. */
export const emptyModelConfig: ModelConfig = {
  input: [],
  output: [],
  batch_input: [],
  batch_output: [],
  instance_group: [],
  cc_model_filenames: {},
  metric_tags: {},
  parameters: {},
  model_warmup: [],
}

/** Model parameters that Gantry reads; they override what it recognises. See docs/models.md. */
export const gantryParameters = [
  'gantry.head',
  'gantry.input_size',
  'gantry.color',
  'gantry.range',
  'gantry.letterbox',
  'gantry.layout',
  'gantry.score_threshold',
  'gantry.iou_threshold',
  'gantry.max_detections',
  'gantry.exclusive_labels',
  'gantry.mean',
  'gantry.std',
  'gantry.size_order',
  'gantry.head_outputs',
  'gantry.head_classes',
  'gantry.head_strides',
  'gantry.head_box',
  'gantry.head_unit',
  'gantry.head_first_class',
  'gantry.head_background',
  'gantry.head_activation',
  'gantry.head_reg_max',
  'gantry.head_offset',
  'gantry.head_anchors',
  'gantry.head_decoding',
  'gantry.head_scale',
  'gantry.head_zero_point',
  'gantry.head_top_rows',
  'gantry.kserve_addresses',
  'gantry.kserve_model',
  'gantry.kserve_version',
  'gantry.kserve_timeout_ms',
  'gantry.kserve_retries',
  'gantry.kserve_probe_ms',
  'gantry.kserve_tls',
  'gantry.kserve_ca_file',
  'gantry.kserve_token_file',
  'gantry.timeout_ms',
  'gantry.files_of',
  'gantry.gpu_model',
  'gantry.float16_model',
  'gantry.crop_size',
  'gantry.crop_margin',
  'gantry.attributes',
  'gantry.attribute_labels',
  'gantry.attribute_activation',
] as const
export type GantryParameter = (typeof gantryParameters)[number]

/** A model parameter, `undefined` where it is absent or empty. */
export function parameterOf(config: ModelConfig, key: GantryParameter): string | undefined {
  const value = config.parameters[key]?.string_value
  return value === undefined || value === '' ? undefined : value
}

/** Inputs of the model that the sequence scheduler fills in: clients do not see them, and the configuration does not list them. */
export function hiddenInputs({ sequence_batching: sequences }: ModelConfig): ReadonlySet<string> {
  return new Set([
    ...(sequences?.control_input ?? []).map((control) => control.name),
    ...(sequences?.state ?? []).map((state) => state.input_name),
  ])
}

/** Outputs of the model that the sequence scheduler keeps for the next request of a sequence. */
export function stateOutputs({ sequence_batching: sequences }: ModelConfig): ReadonlySet<string> {
  return new Set((sequences?.state ?? []).map((state) => state.output_name))
}

export type GraphOptimization = 'disabled' | 'basic' | 'extended' | 'all'

/** Levels of Triton's ONNX backend: everything unless told otherwise. */
export function graphOptimization({ optimization }: ModelConfig): GraphOptimization {
  switch (optimization?.graph?.level ?? 0) {
    case -1:
      return 'basic'
    case 1:
      return 'extended'
    case 2:
      return 'disabled'
    default:
      return 'all'
  }
}
