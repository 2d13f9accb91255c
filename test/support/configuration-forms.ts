import { buildOnnx, type TensorSpec } from './onnx-builder.js'

/** A configuration, and what a refusal of it names. */
export type ConfigurationForm = Readonly<{
  name: string
  text: string
  /** A model whose tensors have the shapes that the configuration states, so that only the configuration can be wrong. */
  onnx: Uint8Array
  /** Path of the field. */
  field: string
  /** Triton's words where it refuses the same, else our own. */
  words: string
}>

/** A tensor as it is configured, and the sizes that the model has. */
type Side = Readonly<{ text: string; sizes: readonly number[] }>
type Parts = Readonly<{ batch?: number; input?: Side; output?: Side; more?: string }>

const tensor = (name: string, dims: readonly number[], reshape?: readonly number[]): Side => ({
  text: `{ name: "${name}" data_type: TYPE_FP32 dims: [${dims.join(', ')}]${
    reshape === undefined ? '' : ` reshape { shape: [${reshape.join(', ')}] }`
  } }`,
  sizes: reshape ?? dims,
})

function described({ batch = 8, input = tensor('in', [1]), output = tensor('out', [1]), more = '' }: Parts) {
  return {
    text: `max_batch_size: ${batch}\ninput [${input.text}]\noutput [${output.text}]\n${more}`,
    onnx: constantOut(input.sizes, output.sizes, batch !== 0),
  }
}

function constantOut(input: readonly number[], output: readonly number[], batched: boolean): Uint8Array {
  const spec = (name: string, sizes: readonly number[]): TensorSpec => ({
    name,
    type: 'float32',
    shape: [...(batched ? ['batch'] : []), ...sizes.map((size, at) => (size > 0 ? size : `free${at}`))],
  })
  const shape = [...(batched ? [1] : []), ...output.map((size) => Math.max(1, size))]
  const data = new Float32Array(shape.reduce((count, size) => count * size, 1)).fill(1)
  return buildOnnx({
    inputs: [spec('in', input)],
    outputs: [spec('out', output)],
    constants: [{ name: 'ones', shape, data }],
    nodes: [{ op: 'Identity', inputs: ['ones'], outputs: ['out'] }],
  })
}

const form = (name: string, field: string, words: string, parts: Parts): ConfigurationForm => ({
  name,
  field,
  words,
  ...described(parts),
})

const reshapes = (
  what: string,
  words: string,
  batches: readonly number[],
  dims: readonly number[],
  inShape: readonly number[],
  outShape = inShape,
): ConfigurationForm[] =>
  batches.flatMap((batch) => [
    form(
      `input_reshape_${what}_${batch}`,
      'input[0].reshape.shape',
      `model input 'in' ${words} for input_reshape_${what}_${batch}`,
      {
        batch,
        input: tensor('in', dims, inShape),
      },
    ),
    form(
      `output_reshape_${what}_${batch}`,
      'output[0].reshape.shape',
      `model output 'out' ${words} for output_reshape_${what}_${batch}`,
      { batch, output: tensor('out', dims, outShape) },
    ),
  ])

const twice = ({ text, sizes }: Side): Side => ({ text: `${text}, ${text}`, sizes })

const zeroDims = (name: string, side: 'input' | 'output', dims: readonly number[]) =>
  form(
    name,
    `${side}[0].dims`,
    `model ${side} '${side.slice(0, side.length - 3)}' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for ${name}`,
    { [side]: tensor(side.slice(0, side.length - 3), dims) },
  )

const batching = (name: string, field: string, words: string, settings: string) =>
  form(name, `dynamic_batching.${field}`, words, { more: `dynamic_batching { ${settings} }` })

const control = (input: string, kind: string, value = 'int32_false_true: [0, 1]') =>
  `control_input { name: "${input}" control { kind: CONTROL_SEQUENCE_${kind} ${value} } }`
const sequence = (name: string, field: string, words: string, settings: string) =>
  form(name, `sequence_batching.${field}`, words, { more: `sequence_batching { ${settings} }` })

const delay = 'timeout_action: DELAY default_timeout_microseconds: 1000'
const batchInputs = [
  'ELEMENT_COUNT',
  'ACCUMULATED_ELEMENT_COUNT',
  'ACCUMULATED_ELEMENT_COUNT_WITH_ZERO',
  'MAX_ELEMENT_COUNT_AS_SHAPE',
]
const ofBatch = (name: string, field: 'batch_input' | 'batch_output', inner: string) =>
  form(name, field, 'asks for what is not supported', { more: `${field} { ${inner} }` })
const scatter = 'kind: BATCH_SCATTER_WITH_INPUT_SHAPE'

const otherSize = 'has different size for dims and reshape'
const otherFree = 'has different number of variable-size dimensions for dims and reshape'
const noSize = 'reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension'
const empty = 'cannot have empty reshape for non-batching model as scalar tensors are not supported'

/**
 * The forms that Triton's L0_model_config refuses (`noautofill_platform`), over a model of one float input and output. Its 58th names
 * a GPU that the machine does not have.
 *
 * @see triton-inference-server/server, qa/L0_model_config
 */
export const tritonRefuses: readonly ConfigurationForm[] = [
  ...reshapes('count', otherSize, [4], [1, 3, 2], [5], [3]),
  ...reshapes('count_more_dims', otherSize, [4], [15], [2, 1, 5], [3, 2, 5]),
  ...reshapes('no_free_size', otherSize, [0, 4], [2, -1], [2, 2]),
  ...reshapes('beside_free_size', otherSize, [0, 4], [2, -1], [2, -1, 2], [1, -1, 2]),
  ...reshapes('more_free_sizes', otherFree, [0, 4], [2, -1], [2, -1, -1]),
  ...reshapes('zero', noSize, [0, 4], [2, 2], [0]),
  ...reshapes('empty', empty, [0], [1], []),
  zeroDims('zero_dim_in_a_list', 'input', [1, 0, 28]),
  zeroDims('zero_dim', 'input', [0]),
  zeroDims('zero_dim_in_a_list_out', 'output', [1, 1, 0]),
  zeroDims('zero_dim_out', 'output', [0]),
  batching(
    'no_default_level',
    'default_priority_level',
    'default priority level must be in range [1, 3] for no_default_level',
    'priority_levels: 3',
  ),
  batching(
    'default_level_outside',
    'default_priority_level',
    'default priority level must be in range [1, 3] for default_level_outside',
    'priority_levels: 3 default_priority_level: 5',
  ),
  ...[0, 4].map((key) =>
    batching(
      `policy_of_level_${key}`,
      `priority_queue_policy[${key}]`,
      `priority queue policy must have priority level in range [1, 3] for policy_of_level_${key}`,
      `priority_levels: 3 default_priority_level: 2 priority_queue_policy { key: ${key} value { } }`,
    ),
  ),
  batching(
    'ordered_levels',
    'preserve_ordering',
    "Only one priority level is allowed when 'preserve_ordering' is true for ordered_levels",
    'preserve_ordering: true priority_levels: 3 default_priority_level: 2 priority_queue_policy { key: 1 value { } }',
  ),
  batching(
    'ordered_delay',
    'default_queue_policy.timeout_action',
    "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for ordered_delay",
    `preserve_ordering: true default_queue_policy { ${delay} }`,
  ),
  batching(
    'ordered_delay_of_level',
    'priority_queue_policy[1].timeout_action',
    "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for ordered_delay_of_level",
    `preserve_ordering: true priority_levels: 1 default_priority_level: 1 priority_queue_policy { key: 1 value { ${delay} } }`,
  ),
  ...['START', 'END', 'READY'].map((kind) =>
    sequence(
      `two_of_${kind}`,
      'control_input',
      `sequence batching specifies multiple CONTROL_SEQUENCE_${kind} tensors for two_of_${kind}`,
      `${control('A', kind)} ${control('B', kind)}`,
    ),
  ),
  sequence(
    'one_input_two_controls',
    'control_input',
    "sequence batching control tensor 'A' is specified for multiple control kinds for one_input_two_controls",
    `${control('A', 'START')} ${control('A', 'READY')}`,
  ),
  sequence(
    'control_without_values',
    'control_input[1].control[0].int32_false_true',
    "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for CONTROL_SEQUENCE_READY for control_without_values",
    `${control('A', 'START')} ${control('B', 'READY', '')}`,
  ),
  form(
    'cpu_with_gpus',
    'instance_group[0].gpus',
    'instance group cpu_with_gpus_0 of model cpu_with_gpus has kind KIND_CPU but specifies one or more GPU',
    { more: 'instance_group { kind: KIND_CPU gpus: 0 }' },
  ),
  form('gpu_below_zero', 'instance_group[1].gpus', 'specifies invalid or unsupported gpu id -1', {
    more: 'instance_group { gpus: 0 } instance_group { kind: KIND_GPU gpus: -1 }',
  }),
  form(
    'batch_below_zero',
    'max_batch_size',
    "'max_batch_size' must be non-negative value for batch_below_zero",
    {
      batch: -2,
    },
  ),
  form('no_type', 'input[0].data_type', "model input 'in' must specify 'data_type' for no_type", {
    batch: 4,
    input: { text: '{ name: "in" dims: [2, -1] }', sizes: [2, -1] },
  }),
  form(
    'ensemble_with_instances',
    'instance_group',
    'instance_group, optimization or model_warmup of an ensemble',
    { more: 'ensemble_scheduling { step { model_name: "a" } } instance_group { kind: KIND_GPU gpus: 42 }' },
  ),
  ...batchInputs.flatMap((kind) =>
    [0, 2].map((count) =>
      ofBatch(
        `batch_input_${kind}_${count}`,
        'batch_input',
        `kind: BATCH_${kind} target_name: "B" data_type: TYPE_FP32 ${'source_input: "in" '.repeat(count)}`,
      ),
    ),
  ),
  ofBatch(
    'batch_input_of_none',
    'batch_input',
    'kind: BATCH_ELEMENT_COUNT target_name: "B" data_type: TYPE_FP32 source_input: "x"',
  ),
  ofBatch('batch_output_twice', 'batch_output', `target_name: ["out", "out"] ${scatter} source_input: "in"`),
  ofBatch('batch_output_0', 'batch_output', `target_name: "out" ${scatter}`),
  ofBatch('batch_output_2', 'batch_output', `target_name: "out" ${scatter} source_input: ["in", "in"]`),
  ofBatch('batch_output_of_none', 'batch_output', `target_name: "out" ${scatter} source_input: "x"`),
  ofBatch('batch_output_to_none', 'batch_output', `target_name: "x" ${scatter} source_input: "in"`),
]

/** More of the same kind. */
export const alsoRefused: readonly ConfigurationForm[] = [
  form('dim_below_minus_one', 'input[0].dims', 'dims are [-2]', { input: tensor('in', [-2]) }),
  form('reshape_below_minus_one', 'output[0].reshape.shape', 'reshape is [-2]', {
    output: tensor('out', [1], [-2]),
  }),
  form('empty_reshape_of_three', 'input[0].reshape.shape', 'reshape [] has 1 elements, dims [3] have 3', {
    input: tensor('in', [3], []),
  }),
  form('free_sizes_in_other_places', 'input[0].reshape.shape', otherSize, {
    input: tensor('in', [2, -1, 3], [3, -1, 2]),
  }),
  form('no_name', 'input[0].name', "model input must specify 'name'", {
    input: { text: '{ data_type: TYPE_FP32 dims: 1 }', sizes: [1] },
  }),
  form('no_output_type', 'output[0].data_type', "must specify 'data_type'", {
    output: { text: '{ name: "out" dims: 1 }', sizes: [1] },
  }),
  form('input_twice', 'input', "model input 'in' is specified more than once", {
    input: twice(tensor('in', [1])),
  }),
  form('output_twice', 'output', "model output 'out' is specified more than once", {
    output: twice(tensor('out', [1])),
  }),
  form('input_and_control', 'input[0].name', "model input 'in' is also a control or a state", {
    more: `sequence_batching { ${control('in', 'START')} }`,
  }),
  batching(
    'preferred_zero',
    'preferred_batch_size',
    'preferred size must be positive',
    'preferred_batch_size: 0',
  ),
  batching(
    'preferred_below_zero',
    'preferred_batch_size',
    'preferred size must be positive',
    'preferred_batch_size: [4, -4]',
  ),
  batching(
    'preferred_too_large',
    'preferred_batch_size',
    'preferred size must be <= max batch size for preferred_too_large: it is [4, 16]',
    'preferred_batch_size: [4, 16]',
  ),
  form('preferred_without_batches', 'dynamic_batching.preferred_batch_size', 'must be <= max batch size', {
    batch: 0,
    more: 'dynamic_batching { preferred_batch_size: 1 }',
  }),
  batching(
    'far_too_many_levels',
    'priority_levels',
    '4000000000 priority levels',
    'priority_levels: 4000000000',
  ),
  sequence(
    'two_of_CORRID',
    'control_input',
    'sequence batching specifies multiple CONTROL_SEQUENCE_CORRID tensors',
    `${control('A', 'CORRID', 'data_type: TYPE_UINT64')} ${control('B', 'CORRID', 'data_type: TYPE_UINT64')}`,
  ),
  ...['TYPE_FP32', 'TYPE_UINT8', 'TYPE_BOOL', 'TYPE_INVALID'].map((type) =>
    sequence(
      `id_${type}`,
      'control_input[0].control[0].data_type',
      `unexpected data type for control CONTROL_SEQUENCE_CORRID for id_${type}`,
      control('A', 'CORRID', `data_type: ${type}`),
    ),
  ),
  sequence(
    'id_with_values',
    'control_input[0].control[0].fp32_false_true',
    "sequence batching must not specify either 'int32_false_true'",
    control('A', 'CORRID', 'data_type: TYPE_UINT64 fp32_false_true: [0, 1]'),
  ),
  sequence(
    'control_of_two_types',
    'control_input[0].control[0].fp32_false_true',
    "sequence batching specifies more than one from 'int32_false_true'",
    control('A', 'START', 'int32_false_true: [0, 1] fp32_false_true: [0, 1]'),
  ),
  ...['0', '[0, 1, 2]'].map((values, index) =>
    sequence(
      `control_values_${index}`,
      'control_input[0].control[0].bool_false_true',
      "control 'bool_false_true' must have exactly 2 entries",
      control('A', 'START', `bool_false_true: ${values.replace('2', '1')}`),
    ),
  ),
  sequence(
    'control_without_name',
    'control_input[0].name',
    'sequence batching control tensor must have a name',
    'control_input { control { int32_false_true: [0, 1] } }',
  ),
  sequence(
    'control_of_nothing',
    'control_input[0].control',
    "'A' has no control",
    'control_input { name: "A" }',
  ),
  sequence(
    'two_controls_in_one',
    'control_input[0]',
    "'A' is specified for multiple control kinds",
    'control_input { name: "A" control { int32_false_true: [0, 1] } control { kind: CONTROL_SEQUENCE_END int32_false_true: [0, 1] } }',
  ),
  sequence(
    'oldest_preferred',
    'oldest.preferred_batch_size',
    'sequence batching preferred batch size must be <= max batch size',
    'oldest { preferred_batch_size: 9 }',
  ),
  sequence(
    'oldest_preferred_zero',
    'oldest.preferred_batch_size',
    'sequence batching preferred batch size must be positive',
    'oldest { preferred_batch_size: 0 }',
  ),
  sequence(
    'oldest_candidates',
    'oldest.max_candidate_sequences',
    'it is -1',
    'oldest { max_candidate_sequences: -1 }',
  ),
  ...['-0.1', '1.5'].map((share, index) =>
    sequence(
      `utilization_${index}`,
      'direct.minimum_slot_utilization',
      'sequence batching minimum slot utilization must be in range (0.0, 1.0]',
      `direct { minimum_slot_utilization: ${share} }`,
    ),
  ),
  sequence(
    'state_of_nothing',
    'state[0].input_name',
    "sequence batching state must specify 'input_name'",
    'state { output_name: "s" data_type: TYPE_FP32 dims: 1 }',
  ),
  sequence(
    'state_without_type',
    'state[0].data_type',
    "sequence batching state must specify 'data_type'",
    'state { input_name: "r" output_name: "s" dims: 1 }',
  ),
  sequence(
    'state_twice',
    'state.input_name',
    "multiple states with input_name 'r'",
    ['s', 't']
      .map((out) => `state { input_name: "r" output_name: "${out}" data_type: TYPE_FP32 dims: 1 }`)
      .join(' '),
  ),
  sequence(
    'state_dims',
    'state[0].dims',
    'has dims [-3]',
    'state { input_name: "r" output_name: "s" data_type: TYPE_FP32 dims: -3 }',
  ),
  sequence(
    'two_initial_states',
    'state[0].initial_state',
    'has several initial states',
    `state { input_name: "r" output_name: "s" data_type: TYPE_FP32 dims: 1 ${'initial_state { data_type: TYPE_FP32 dims: 1 zero_data: true name: "i" } '.repeat(2)} }`,
  ),
  sequence(
    'initial_state_type',
    'state[0].initial_state[0].data_type',
    'is TYPE_INT32, but the state is TYPE_FP32',
    'state { input_name: "r" output_name: "s" data_type: TYPE_FP32 dims: 4 initial_state { data_type: TYPE_INT32 dims: 4 zero_data: true name: "i" } }',
  ),
  sequence(
    'initial_state_dims',
    'state[0].initial_state[0].dims',
    'has dims [3], but the state has [4]',
    'state { input_name: "r" output_name: "s" data_type: TYPE_FP32 dims: 4 initial_state { data_type: TYPE_FP32 dims: 3 zero_data: true name: "i" } }',
  ),
  form('too_many_instances', 'instance_group.count', 'has 2000001 instances', {
    more: 'instance_group { count: 2000000 } instance_group { passive: true }',
  }),
  form('count_below_zero', 'instance_group[0].count', 'has a count of -3', {
    more: 'instance_group { count: -3 }',
  }),
  form(
    'model_kind_with_gpus',
    'instance_group[0].gpus',
    'has kind KIND_MODEL but specifies one or more GPUs',
    {
      more: 'instance_group { kind: KIND_MODEL gpus: 1 }',
    },
  ),
  form('no_versions', 'version_policy.latest.num_versions', 'serves 0 versions', {
    more: 'version_policy { latest { num_versions: 0 } }',
  }),
  form('no_version_named', 'version_policy.specific.versions', 'names versions []', {
    more: 'version_policy { specific { } }',
  }),
  form('version_below_one', 'version_policy.specific.versions', 'names versions [1, -1]', {
    more: 'version_policy { specific { versions: [1, -1] } }',
  }),
  form(
    'other_platform',
    'platform',
    "unexpected 'platform' and 'backend' pair, got:tensorrt_plan, onnxruntime",
    {
      more: 'platform: "tensorrt_plan" backend: "onnxruntime"',
    },
  ),
  form('ensemble_on_a_backend', 'backend', 'ensemble scheduling cannot be set', {
    more: 'backend: "onnxruntime" ensemble_scheduling { step { model_name: "a" } }',
  }),
  form('ensemble_on_a_platform', 'platform', 'whose platform is not ensemble', {
    more: 'platform: "onnxruntime_onnx" ensemble_scheduling { step { model_name: "a" } }',
  }),
  form('ensemble_of_nothing', 'ensemble_scheduling', 'ensemble scheduling must be set for ensemble', {
    more: 'platform: "ensemble"',
  }),
  form('step_of_nothing', 'ensemble_scheduling.step[0].model_name', "must specify 'model_name' in step 0", {
    more: 'ensemble_scheduling { step { model_version: -1 } }',
  }),
  form('step_of_no_version', 'ensemble_scheduling.step[0].model_version', 'has version -2', {
    more: 'ensemble_scheduling { step { model_name: "a" model_version: -2 } }',
  }),
  form('warmup_of_no_input', 'model_warmup[0].inputs["x"]', "has an input 'x' that the model has not", {
    more: 'model_warmup { name: "w" inputs { key: "x" value { data_type: TYPE_FP32 dims: 1 zero_data: true } } }',
  }),
  form('warmup_of_open_size', 'model_warmup[0].inputs["in"].dims', 'has dims [-1]', {
    more: 'model_warmup { name: "w" inputs { key: "in" value { data_type: TYPE_FP32 dims: -1 zero_data: true } } }',
  }),
  form('warmup_without_type', 'model_warmup[0].inputs["in"].data_type', "must specify 'data_type' of 'in'", {
    more: 'model_warmup { name: "w" inputs { key: "in" value { dims: 1 zero_data: true } } }',
  }),
  form('warmup_of_other_type', 'model_warmup[0].inputs["in"].data_type', "has TYPE_INT32 for 'in'", {
    more: 'model_warmup { name: "w" inputs { key: "in" value { data_type: TYPE_INT32 dims: 1 zero_data: true } } }',
  }),
  form('warmup_of_other_shape', 'model_warmup[0].inputs["in"].dims', "has dims [2] for 'in', which has [1]", {
    more: 'model_warmup { name: "w" inputs { key: "in" value { data_type: TYPE_FP32 dims: 2 zero_data: true } } }',
  }),
  form('warmup_without_input', 'model_warmup[0].inputs', "has no input 'in'", {
    more: 'model_warmup { name: "w" }',
  }),
  form('warmup_batch', 'model_warmup[0].batch_size', 'it is 9', {
    more: 'model_warmup { name: "w" batch_size: 9 }',
  }),
]

/** Configurations close to those, which mean something. */
export const accepted: readonly Pick<ConfigurationForm, 'name' | 'text' | 'onnx'>[] = (
  [
    ['plain', {}],
    ['reshape_to_scalar', { input: tensor('in', [1], []), output: tensor('out', [1], []) }],
    ['reshape_to_more', { input: tensor('in', [6], [1, 3, 2]), output: tensor('out', [2, 3], [6]) }],
    ['reshape_of_free', { batch: 0, input: tensor('in', [2, 4, -1, 6], [8, -1, 1, 6]) }],
    ['one_dim_free', { input: tensor('in', [-1]), output: tensor('out', [-1]) }],
    [
      'levels',
      {
        more: `dynamic_batching { preferred_batch_size: [2, 8] priority_levels: 3 default_priority_level: 2 priority_queue_policy { key: 3 value { ${delay} } } }`,
      },
    ],
    [
      'ordered',
      { more: 'dynamic_batching { preserve_ordering: true priority_levels: 1 default_priority_level: 1 }' },
    ],
    [
      'ordered_without_timeout',
      { more: 'dynamic_batching { preserve_ordering: true default_queue_policy { timeout_action: DELAY } }' },
    ],
    [
      'controls',
      {
        more: `sequence_batching { ${control('S', 'START')} ${control('R', 'READY', 'fp32_false_true: [0, 1]')} ${control('E', 'END', 'bool_false_true: [false, true]')} ${control('I', 'CORRID', 'data_type: TYPE_STRING')} oldest { max_candidate_sequences: 4 preferred_batch_size: 8 } }`,
      },
    ],
    [
      'state',
      {
        more: 'sequence_batching { direct { minimum_slot_utilization: 1 } state { input_name: "r" output_name: "out" data_type: TYPE_FP32 dims: -1 initial_state { name: "i" data_type: TYPE_FP32 dims: 0 zero_data: true } } }',
      },
    ],
    [
      'instances',
      { more: 'instance_group { count: 0 kind: KIND_CPU } instance_group { kind: KIND_GPU gpus: [0, 1] }' },
    ],
    ['versions', { more: 'version_policy { specific { versions: 3 } }' }],
    ['latest', { more: 'version_policy { latest { } }' }],
    ['platform', { more: 'platform: "onnxruntime_onnx" backend: "onnxruntime"' }],
    [
      'warmup',
      {
        more: 'model_warmup { name: "w" batch_size: 8 inputs { key: "in" value { data_type: TYPE_FP32 dims: 1 } } }',
      },
    ],
  ] satisfies [string, Parts][]
).map(([name, parts]) => ({ name, ...described(parts) }))
