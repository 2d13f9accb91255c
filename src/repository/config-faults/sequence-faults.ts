import type {
  ControlKind,
  ModelConfig,
  SequenceBatching,
  SequenceControl,
  SequenceState,
} from '../model-config.js'
import { batchLimit, type ConfigFault, isGiven, listed, repeated } from './fault.js'
import { configuredInstances } from './instance-faults.js'

const idTypes = ['TYPE_UINT64', 'TYPE_INT64', 'TYPE_UINT32', 'TYPE_INT32', 'TYPE_STRING']

const pairFields = ['int32_false_true', 'fp32_false_true', 'bool_false_true'] as const

/** Controls, states and slots of sequences. */
export function sequenceFaults(config: ModelConfig): readonly ConfigFault[] {
  const { name: model = '', sequence_batching: batching } = config
  if (batching === undefined) return []
  return [
    ...controlFaults(batching, model),
    ...kindFaults(batching, model),
    ...stateFaults(batching, model),
    ...slotFaults(config, batching),
    ...sharedFaults(batching, model),
  ]
}

function controlFaults({ control_input }: SequenceBatching, model: string): readonly ConfigFault[] {
  const names = control_input.map(({ name }) => name)
  return [
    ...control_input.flatMap(({ name, control }, index) => {
      const field = `sequence_batching.control_input[${index}]`
      if (!isGiven(name))
        return [
          {
            field: `${field}.name`,
            problem: `sequence batching control tensor must have a name for ${model}`,
            fix: 'write the name of the input',
          },
        ]
      if (control.length === 0)
        return [
          {
            field: `${field}.control`,
            problem: `sequence batching control tensor '${name}' has no control for ${model}`,
            fix: 'write what it tells the model, or take it out',
          },
        ]
      if (control.length > 1) return [severalKinds(field, name, model)]
      return control.flatMap((one) => valueFaults(`${field}.control[0]`, one, model))
    }),
    ...repeated(names.filter(isGiven)).map((name) =>
      severalKinds('sequence_batching.control_input', name, model),
    ),
  ]
}

function severalKinds(field: string, name: string, model: string): ConfigFault {
  return {
    field,
    problem: `sequence batching control tensor '${name}' is specified for multiple control kinds for ${model}`,
    fix: 'give each control an input of its own',
  }
}

function kindOf({ kind }: SequenceControl): ControlKind {
  return kind ?? 'CONTROL_SEQUENCE_START'
}

/** The correlation id has a type; the others have one pair of values. */
function valueFaults(field: string, control: SequenceControl, model: string): readonly ConfigFault[] {
  const kind = kindOf(control)
  const pairs = pairFields.filter((name) => control[name].length > 0)
  const fault = (at: string, problem: string, fix: string): ConfigFault[] => [
    { field: `${field}.${at}`, problem, fix },
  ]
  if (kind === 'CONTROL_SEQUENCE_CORRID') {
    const [pair] = pairs
    if (pair !== undefined)
      return fault(
        pair,
        `sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for ${kind} for ${model}`,
        'write data_type instead',
      )
    const { data_type: type = 'TYPE_INVALID' } = control
    if (idTypes.includes(type)) return []
    return fault(
      'data_type',
      `unexpected data type for control ${kind} for ${model}: it is ${type}. Allowed data types are ${idTypes.slice(0, -1).join(', ')} and TYPE_STRING`,
      'write the one that the model has',
    )
  }
  const [pair, second] = pairs
  if (pair === undefined)
    return fault(
      pairFields[0],
      `sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for ${kind} for ${model}`,
      'write the values for false and true',
    )
  if (second !== undefined)
    return fault(
      second,
      `sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and 'bool_false_true' for ${kind} for ${model}`,
      'leave the one of the type that the model has',
    )
  if (control[pair].length === 2) return []
  return fault(
    pair,
    `sequence batching control '${pair}' must have exactly 2 entries for ${kind} for ${model}: it is ${listed(control[pair])}`,
    'write the values for false and true',
  )
}

function kindFaults({ control_input }: SequenceBatching, model: string): readonly ConfigFault[] {
  const kinds = control_input.flatMap(({ control }) => control.map(kindOf))
  return repeated(kinds).map((kind) => ({
    field: 'sequence_batching.control_input',
    problem: `sequence batching specifies multiple ${kind} tensors for ${model}`,
    fix: 'leave one of them',
  }))
}

/** What is a control and a state has two values at once. */
function sharedFaults({ control_input, state }: SequenceBatching, model: string): readonly ConfigFault[] {
  const states = state.map(({ input_name }) => input_name)
  return control_input.flatMap(({ name }, index) =>
    isGiven(name) && states.includes(name)
      ? [
          {
            field: `sequence_batching.control_input[${index}].name`,
            problem: `sequence batching specifies '${name}' as control and as state for ${model}`,
            fix: 'give each an input of its own',
          },
        ]
      : [],
  )
}

function stateFaults({ state }: SequenceBatching, model: string): readonly ConfigFault[] {
  const faults = state.flatMap(
    ({ input_name, output_name, data_type, dims, initial_state }, index): ConfigFault[] => {
      const field = `sequence_batching.state[${index}]`
      const initialFaults = (at: string, initial: SequenceState['initial_state'][number]): ConfigFault[] => [
        ...(isGiven(initial.data_type) && initial.data_type !== data_type
          ? [
              {
                field: `${at}.data_type`,
                problem: `initial state of '${input_name}' of ${model} is ${initial.data_type}, but the state is ${data_type}`,
                fix: 'give both the same type',
              },
            ]
          : []),
        ...(initial.zero_data === false
          ? [
              {
                field: `${at}.zero_data`,
                problem: `initial state of '${input_name}' of ${model} has zero_data: false, which says nothing`,
                fix: 'write zero_data: true or data_file',
              },
            ]
          : []),
        ...(initial.dims.length > 0 && dims.length > 0 && !isOneOf(initial.dims, dims)
          ? [
              {
                field: `${at}.dims`,
                problem: `initial state of '${input_name}' of ${model} has dims ${listed(initial.dims)}, but the state has ${listed(dims)}`,
                fix: 'write a size for each -1 of the state, and the others as they are',
              },
            ]
          : []),
      ]
      const known = [
        ['input_name', input_name],
        ['output_name', output_name],
        ['data_type', data_type],
      ] as const
      const sizes = [
        [`${field}.dims`, dims],
        ...initial_state.map((initial, at) => [`${field}.initial_state[${at}].dims`, initial.dims] as const),
      ] as const
      return [
        ...known.flatMap(([name, value]) =>
          isGiven(value)
            ? []
            : [
                {
                  field: `${field}.${name}`,
                  problem: `sequence batching state must specify '${name}' for ${model}`,
                  fix: 'write that of the model',
                },
              ],
        ),
        ...sizes.flatMap(([at, list]) =>
          list.some((size) => size < -1)
            ? [
                {
                  field: at,
                  problem: `sequence batching state '${input_name}' of ${model} has dims ${listed(list)}`,
                  fix: 'write -1 where the size may vary',
                },
              ]
            : [],
        ),
        ...initial_state.flatMap((initial, at) => initialFaults(`${field}.initial_state[${at}]`, initial)),
        ...(initial_state.length > 1
          ? [
              {
                field: `${field}.initial_state`,
                problem: `sequence batching state '${input_name}' has several initial states for ${model}`,
                fix: 'leave the one that sequences start with',
              },
            ]
          : []),
      ]
    },
  )
  const twice = (['input_name', 'output_name'] as const).flatMap((key) =>
    repeated(state.map((each) => each[key]).filter(isGiven)).map((name) => ({
      field: `sequence_batching.state.${key}`,
      problem: `sequence batching specifies multiple states with ${key} '${name}' for ${model}`,
      fix: 'leave one of them',
    })),
  )
  return [...faults, ...twice]
}

/** Whether a tensor of the one shape is one of the other, where -1 is any size. */
function isOneOf(sizes: readonly number[], dims: readonly number[]): boolean {
  return (
    sizes.length === dims.length &&
    sizes.every((size, axis) => size === -1 || dims[axis] === -1 || size === dims[axis])
  )
}

/** Each is a place in memory, and is looked at for each batch. */
const mostSlots = 65_536

function slotFaults(config: ModelConfig, { direct, oldest }: SequenceBatching): readonly ConfigFault[] {
  const { name: model = '' } = config
  const utilization = direct?.minimum_slot_utilization ?? 0
  const candidates = oldest?.max_candidate_sequences ?? 0
  const each = oldest === undefined ? (batchLimit(config) ?? 0) : candidates
  const slots = each * Math.max(1, configuredInstances(config))
  return [
    ...(utilization >= 0 && utilization <= 1
      ? []
      : [
          {
            field: 'sequence_batching.direct.minimum_slot_utilization',
            problem: `sequence batching minimum slot utilization must be in range (0.0, 1.0] for ${model}: it is ${utilization}`,
            fix: 'write a share, such as 0.5',
          },
        ]),
    ...(candidates >= 0
      ? []
      : [
          {
            field: 'sequence_batching.oldest.max_candidate_sequences',
            problem: `sequence batching must not have a negative number of candidates for ${model}: it is ${candidates}`,
            fix: 'write how many sequences an instance holds',
          },
        ]),
    ...(slots <= mostSlots
      ? []
      : [
          {
            field:
              oldest === undefined ? 'max_batch_size' : 'sequence_batching.oldest.max_candidate_sequences',
            problem: `sequence batching has ${slots} places for sequences in all instances of ${model}`,
            fix: `write fewer: at most ${mostSlots} in all`,
          },
        ]),
  ]
}
