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

/** Ones, whatever comes in. */
function constantOut(input: readonly number[], output: readonly number[], batched: boolean): Uint8Array {
  const spec = (name: string, sizes: readonly number[]): TensorSpec => ({
    name,
    type: 'float32',
    shape: [...(batched ? ['batch'] : []), ...sizes.map((size, at) => (size > 0 ? size : `free${at}`))],
  })
  const sizes = BigInt64Array.from(output, (size) => BigInt(Math.max(1, size)))
  const first = { name: 'first', shape: [1], data: BigInt64Array.of(0n) }
  return buildOnnx({
    inputs: [spec('in', input)],
    outputs: [spec('out', output)],
    constants: [
      { name: 'one', shape: [], data: Float32Array.of(1) },
      { name: 'sizes', shape: [sizes.length], data: sizes },
      ...(batched ? [first] : []),
    ],
    nodes: batched
      ? [
          { op: 'Shape', inputs: ['in'], outputs: ['whole'] },
          { op: 'Gather', inputs: ['whole', 'first'], outputs: ['batch'] },
          { op: 'Concat', inputs: ['batch', 'sizes'], outputs: ['shape'], attributes: { axis: 0 } },
          { op: 'Expand', inputs: ['one', 'shape'], outputs: ['out'] },
        ]
      : [{ op: 'Expand', inputs: ['one', 'sizes'], outputs: ['out'] }],
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

const warmup = (input: string, data: string) =>
  `model_warmup { name: "w" inputs { key: "${input}" value { ${data} } } }`
const state = (dims: string, inner = '', output = 's') =>
  `state { input_name: "r" output_name: "${output}" data_type: TYPE_FP32 dims: ${dims} ${inner} }`
const initial = (dims: string, type = 'TYPE_FP32', data = 'zero_data: true') =>
  `initial_state { name: "i" data_type: ${type} dims: ${dims} ${data} }`
const ensemble = (step: string) => `ensemble_scheduling { step { ${step} } }`
const accelerators = (inner: string) => `optimization { execution_accelerators { ${inner} } }`
const resources = (inner: string) => `instance_group { rate_limiter { ${inner} } }`
const metric = (inner: string) => `model_metrics { metric_control { ${inner} } }`

type Row = readonly [name: string, field: string, words: string, text: string]

/** Of one kind: under a field, in settings that hold the texts. */
const rows = (
  fieldOf: (field: string) => string,
  textOf: (text: string) => string,
  list: readonly Row[],
): ConfigurationForm[] =>
  list.map(([name, field, words, text]) => form(name, fieldOf(field), words, { more: textOf(text) }))

const inDynamic = (list: readonly Row[]) =>
  rows(
    (field) => `dynamic_batching.${field}`,
    (text) => `dynamic_batching { ${text} }`,
    list,
  )
const inSequence = (list: readonly Row[]) =>
  rows(
    (field) => `sequence_batching.${field}`,
    (text) => `sequence_batching { ${text} }`,
    list,
  )
const alone = (list: readonly Row[]) =>
  rows(
    (field) => field,
    (text) => text,
    list,
  )

const huge = '18446744073709551615'

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
  form('preferred_without_batches', 'dynamic_batching.preferred_batch_size', 'must be <= max batch size', {
    batch: 0,
    more: 'dynamic_batching { preferred_batch_size: 1 }',
  }),
  form('far_too_large_batch', 'max_batch_size', 'must be a number <= 16777216', { batch: 2 ** 31 - 1 }),
  form('far_too_many_elements', 'input[0].dims', 'have 4000000000 elements', {
    input: { text: '{ name: "in" data_type: TYPE_FP32 dims: [ 2000000000, 2 ] }', sizes: [-1, 2] },
  }),
  form('direct_slots', 'max_batch_size', 'has 2097152 places for sequences', {
    batch: 2 ** 21,
    more: 'sequence_batching { direct { } }',
  }),
  ...inDynamic([
    ['preferred_zero', 'preferred_batch_size', 'preferred size must be positive', 'preferred_batch_size: 0'],
    [
      'preferred_below_zero',
      'preferred_batch_size',
      'preferred size must be positive',
      'preferred_batch_size: [4, -4]',
    ],
    [
      'preferred_too_large',
      'preferred_batch_size',
      'preferred size must be <= max batch size for preferred_too_large: it is [4, 16]',
      'preferred_batch_size: [4, 16]',
    ],
    ['far_too_many_levels', 'priority_levels', '4000000000 priority levels', 'priority_levels: 4000000000'],
    [
      'held_back_for_ever',
      'max_queue_delay_microseconds',
      'must be a number <= 86400000000 for held_back_for_ever: it is 18446744073709552000',
      `max_queue_delay_microseconds: ${huge}`,
    ],
    [
      'timeout_beyond_timers',
      'default_queue_policy.default_timeout_microseconds',
      'must be a number <= 2147483647000',
      'default_queue_policy { default_timeout_microseconds: 2147483647001 }',
    ],
    [
      'timeout_of_level_beyond_timers',
      'priority_queue_policy[1].default_timeout_microseconds',
      'must be a number <= 2147483647000',
      `priority_levels: 1 default_priority_level: 1 priority_queue_policy { key: 1 value { default_timeout_microseconds: ${huge} } }`,
    ],
  ]),
  ...inSequence([
    [
      'two_of_CORRID',
      'control_input',
      'sequence batching specifies multiple CONTROL_SEQUENCE_CORRID tensors',
      `${control('A', 'CORRID', 'data_type: TYPE_UINT64')} ${control('B', 'CORRID', 'data_type: TYPE_UINT64')}`,
    ],
    ...['TYPE_FP32', 'TYPE_UINT8', 'TYPE_BOOL', 'TYPE_INVALID'].map((type): Row => [
      `id_${type}`,
      'control_input[0].control[0].data_type',
      `unexpected data type for control CONTROL_SEQUENCE_CORRID for id_${type}`,
      control('A', 'CORRID', `data_type: ${type}`),
    ]),
    [
      'id_with_values',
      'control_input[0].control[0].fp32_false_true',
      "sequence batching must not specify either 'int32_false_true'",
      control('A', 'CORRID', 'data_type: TYPE_UINT64 fp32_false_true: [0, 1]'),
    ],
    [
      'control_of_two_types',
      'control_input[0].control[0].fp32_false_true',
      "sequence batching specifies more than one from 'int32_false_true'",
      control('A', 'START', 'int32_false_true: [0, 1] fp32_false_true: [0, 1]'),
    ],
    ...['0', '[0, 1, 1]'].map((values, index): Row => [
      `control_values_${index}`,
      'control_input[0].control[0].bool_false_true',
      "control 'bool_false_true' must have exactly 2 entries",
      control('A', 'START', `bool_false_true: ${values}`),
    ]),
    [
      'control_of_no_number',
      'control_input[0].control[0].fp32_false_true[1]',
      'it is NaN',
      control('A', 'START', 'fp32_false_true: [0, nan]'),
    ],
    [
      'control_without_name',
      'control_input[0].name',
      'sequence batching control tensor must have a name',
      'control_input { control { int32_false_true: [0, 1] } }',
    ],
    ['control_of_nothing', 'control_input[0].control', "'A' has no control", 'control_input { name: "A" }'],
    [
      'two_controls_in_one',
      'control_input[0]',
      "'A' is specified for multiple control kinds",
      'control_input { name: "A" control { int32_false_true: [0, 1] } control { kind: CONTROL_SEQUENCE_END int32_false_true: [0, 1] } }',
    ],
    [
      'control_and_state',
      'control_input[0].name',
      "specifies 'r' as control and as state",
      `${control('r', 'START')} ${state('1')}`,
    ],
    [
      'oldest_preferred',
      'oldest.preferred_batch_size',
      'sequence batching preferred batch size must be <= max batch size',
      'oldest { preferred_batch_size: 9 }',
    ],
    [
      'oldest_preferred_zero',
      'oldest.preferred_batch_size',
      'sequence batching preferred batch size must be positive',
      'oldest { preferred_batch_size: 0 }',
    ],
    [
      'oldest_candidates',
      'oldest.max_candidate_sequences',
      'it is -1',
      'oldest { max_candidate_sequences: -1 }',
    ],
    [
      'oldest_slots',
      'oldest.max_candidate_sequences',
      'has 2147483647 places for sequences',
      'oldest { max_candidate_sequences: 2147483647 }',
    ],
    ...['direct', 'oldest'].map((strategy): Row => [
      `${strategy}_held_back_for_ever`,
      `${strategy}.max_queue_delay_microseconds`,
      'must be a number <= 86400000000',
      `${strategy} { max_queue_delay_microseconds: ${huge} }`,
    ]),
    [
      'idle_beyond_timers',
      'max_sequence_idle_microseconds',
      'must be a number <= 2147483647000',
      `max_sequence_idle_microseconds: ${huge}`,
    ],
    ...['-0.1', '1.5', 'nan'].map((share, index): Row => [
      `utilization_${index}`,
      'direct.minimum_slot_utilization',
      'sequence batching minimum slot utilization must be in range (0.0, 1.0]',
      `direct { minimum_slot_utilization: ${share} }`,
    ]),
    [
      'state_of_nothing',
      'state[0].input_name',
      "sequence batching state must specify 'input_name'",
      'state { output_name: "s" data_type: TYPE_FP32 dims: 1 }',
    ],
    [
      'state_without_type',
      'state[0].data_type',
      "sequence batching state must specify 'data_type'",
      'state { input_name: "r" output_name: "s" dims: 1 }',
    ],
    [
      'state_twice',
      'state.input_name',
      "multiple states with input_name 'r'",
      `${state('1')} ${state('1', '', 't')}`,
    ],
    ['state_dims', 'state[0].dims', 'has dims [-3]', state('-3')],
    ['state_of_too_many', 'state[0].dims', 'have 4000000000 elements', state('[2000000000, 2]')],
    [
      'two_initial_states',
      'state[0].initial_state',
      'has several initial states',
      state('1', `${initial('1')} ${initial('1')}`),
    ],
    [
      'initial_state_type',
      'state[0].initial_state[0].data_type',
      'is TYPE_INT32, but the state is TYPE_FP32',
      state('4', initial('4', 'TYPE_INT32')),
    ],
    [
      'initial_state_dims',
      'state[0].initial_state[0].dims',
      'has dims [3], but the state has [4]',
      state('4', initial('3')),
    ],
    [
      'initial_state_of_nothing',
      'state[0].initial_state[0].zero_data',
      'has zero_data: false, which says nothing',
      state('4', initial('4', 'TYPE_FP32', 'zero_data: false')),
    ],
  ]),
  ...alone([
    [
      'input_and_control',
      'input[0].name',
      "model input 'in' is also a control or a state",
      `sequence_batching { ${control('in', 'START')} }`,
    ],
    [
      'too_many_instances',
      'instance_group.count',
      'has 2000001 instances',
      'instance_group { count: 2000000 } instance_group { passive: true }',
    ],
    ['count_below_zero', 'instance_group[0].count', 'has a count of -3', 'instance_group { count: -3 }'],
    [
      'model_kind_with_gpus',
      'instance_group[0].gpus',
      'has kind KIND_MODEL but specifies one or more GPUs',
      'instance_group { kind: KIND_MODEL gpus: 1 }',
    ],
    [
      'passive_alone',
      'instance_group.passive',
      'every instance group of model passive_alone is passive',
      'instance_group { passive: true } instance_group { count: 2 passive: true }',
    ],
    [
      'resource_without_name',
      'instance_group[0].rate_limiter.resources',
      'needs a resource without a name',
      resources('resources { count: 1 }'),
    ],
    [
      'resource_twice',
      'instance_group[0].rate_limiter.resources',
      'needs resource "R" more than once',
      resources('resources { name: "R" count: 1 } resources { name: "R" global: true count: 2 }'),
    ],
    [
      'no_versions',
      'version_policy.latest.num_versions',
      'serves 0 versions',
      'version_policy { latest { num_versions: 0 } }',
    ],
    [
      'no_version_named',
      'version_policy.specific.versions',
      'names versions []',
      'version_policy { specific { } }',
    ],
    [
      'version_below_one',
      'version_policy.specific.versions',
      'names versions [1, -1]',
      'version_policy { specific { versions: [1, -1] } }',
    ],
    [
      'other_platform',
      'platform',
      "unexpected 'platform' and 'backend' pair, got:tensorrt_plan, onnxruntime",
      'platform: "tensorrt_plan" backend: "onnxruntime"',
    ],
    [
      'platform_of_onnx',
      'platform',
      "unexpected 'platform' and 'backend' pair, got:onnxruntime_onnx, js",
      'platform: "onnxruntime_onnx" backend: "js"',
    ],
    [
      'ensemble_on_a_backend',
      'backend',
      'ensemble scheduling cannot be set',
      `backend: "onnxruntime" ${ensemble('model_name: "a"')}`,
    ],
    [
      'ensemble_on_a_platform',
      'platform',
      'whose platform is not ensemble',
      `platform: "onnxruntime_onnx" ${ensemble('model_name: "a"')}`,
    ],
    [
      'ensemble_of_nothing',
      'ensemble_scheduling',
      'ensemble scheduling must be set for ensemble',
      'platform: "ensemble"',
    ],
    [
      'step_of_nothing',
      'ensemble_scheduling.step[0].model_name',
      "must specify 'model_name' in step 0",
      ensemble('model_version: -1'),
    ],
    [
      'step_of_no_version',
      'ensemble_scheduling.step[0].model_version',
      'has version -2',
      ensemble('model_name: "a" model_version: -2'),
    ],
    [
      'warmup_of_no_input',
      'model_warmup[0].inputs["x"]',
      "has an input 'x' that the model has not",
      warmup('x', 'data_type: TYPE_FP32 dims: 1 zero_data: true'),
    ],
    [
      'warmup_of_open_size',
      'model_warmup[0].inputs["in"].dims',
      'has dims [-1]',
      warmup('in', 'data_type: TYPE_FP32 dims: -1 zero_data: true'),
    ],
    [
      'warmup_without_type',
      'model_warmup[0].inputs["in"].data_type',
      "must specify 'data_type' of 'in'",
      warmup('in', 'dims: 1 zero_data: true'),
    ],
    [
      'warmup_of_other_type',
      'model_warmup[0].inputs["in"].data_type',
      "has TYPE_INT32 for 'in'",
      warmup('in', 'data_type: TYPE_INT32 dims: 1 zero_data: true'),
    ],
    [
      'warmup_of_other_shape',
      'model_warmup[0].inputs["in"].dims',
      "has dims [2] for 'in', which has [1]",
      warmup('in', 'data_type: TYPE_FP32 dims: 2 zero_data: true'),
    ],
    ...['zero_data', 'random_data'].map((data): Row => [
      `warmup_of_no_${data}`,
      'model_warmup[0].inputs["in"]',
      `has ${data}: false for 'in', which says nothing`,
      warmup('in', `data_type: TYPE_FP32 dims: 1 ${data}: false`),
    ]),
    ['warmup_without_input', 'model_warmup[0].inputs', "has no input 'in'", 'model_warmup { name: "w" }'],
    ['warmup_batch', 'model_warmup[0].batch_size', 'it is 9', 'model_warmup { name: "w" batch_size: 9 }'],
    [
      'warmup_for_ever',
      'model_warmup[0].count',
      'must be a number <= 10000',
      'model_warmup { name: "w" count: 4294967295 }',
    ],
    [
      'graph_level',
      'optimization.graph.level',
      'must be a number in range [-1, 2] for graph_level: it is 77',
      'optimization { graph { level: 77 } }',
    ],
    [
      'cuda_batch_below_zero',
      'optimization.cuda.graph_spec[0].batch_size',
      'must be a number >= 0',
      'optimization { cuda { graph_spec { batch_size: -1 } } }',
    ],
    [
      'cuda_shape',
      'optimization.cuda.graph_spec[1].input["in"].dim[0]',
      'must be a number >= 1',
      'optimization { cuda { graph_spec { } graph_spec { input { key: "in" value { dim: 0 } } } } }',
    ],
    [
      'unknown_accelerator',
      'optimization.execution_accelerators.gpu_execution_accelerator[0].name',
      "unknown Execution Accelerator 'tensorrtt' is requested",
      accelerators('gpu_execution_accelerator { name: "tensorrtt" }'),
    ],
    [
      'accelerator_of_nothing',
      'optimization.execution_accelerators.cpu_execution_accelerator[0].name',
      "unknown Execution Accelerator '' is requested",
      accelerators('cpu_execution_accelerator { }'),
    ],
    [
      'accelerator_twice',
      'optimization.execution_accelerators.gpu_execution_accelerator',
      "'cuda' is requested more than once",
      accelerators('gpu_execution_accelerator { name: "cuda" } gpu_execution_accelerator { name: "cuda" }'),
    ],
    [
      'tags_of_one_label',
      'metric_tags["a.b"]',
      'metric tags "a-b" and "a.b" of tags_of_one_label are one label, a_b',
      'metric_tags { key: "a-b" value: "1" } metric_tags { key: "a.b" value: "2" }',
    ],
    [
      'metric_of_nothing',
      'model_metrics.metric_control[0].metric_identifier.family',
      'names no family',
      metric('histogram_options { buckets: [1, 2] }'),
    ],
    [
      'buckets_that_fall',
      'model_metrics.metric_control[0].histogram_options.buckets',
      'must ascend: they are [2, 1]',
      metric('metric_identifier { family: "f" } histogram_options { buckets: [2, 1] }'),
    ],
  ]),
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
      'controls',
      {
        more: `sequence_batching { ${control('S', 'START')} ${control('R', 'READY', 'fp32_false_true: [0, 1]')} ${control('E', 'END', 'bool_false_true: [false, true]')} ${control('I', 'CORRID', 'data_type: TYPE_STRING')} oldest { max_candidate_sequences: 4 preferred_batch_size: 8 } }`,
      },
    ],
    [
      'state',
      {
        more: `sequence_batching { direct { minimum_slot_utilization: 1 max_queue_delay_microseconds: 1000 } ${state('-1', initial('0'), 'out')} }`,
      },
    ],
    [
      'instances',
      { more: 'instance_group { count: 0 kind: KIND_CPU } instance_group { kind: KIND_GPU gpus: [0, 1] }' },
    ],
    [
      'longest',
      {
        more: 'dynamic_batching { max_queue_delay_microseconds: 86400000000 default_queue_policy { default_timeout_microseconds: 2147483647000 max_queue_size: 4294967295 } }',
      },
    ],
    ['graph_level_of_none', { more: 'optimization { graph { level: 2 } }' }],
    ['one_passive', { more: 'instance_group { passive: true } instance_group { count: 1 }' }],
    ['tags', { more: 'metric_tags { key: "a-b" value: "1" } metric_tags { key: "a_c" value: "2" }' }],
    ['same_value_twice', { more: 'parameters { key: "k" value { } } parameters { key: "k" value { } }' }],
    ['versions', { more: 'version_policy { specific { versions: 3 } }' }],
    ['latest', { more: 'version_policy { latest { } }' }],
    ['platform', { more: 'platform: "onnxruntime_onnx" backend: "onnxruntime"' }],
    [
      'warmup',
      {
        more: 'model_warmup { name: "w" batch_size: 8 count: 10000 inputs { key: "in" value { data_type: TYPE_FP32 dims: 1 } } }',
      },
    ],
  ] satisfies [string, Parts][]
).map(([name, parts]) => ({ name, ...described(parts) }))
