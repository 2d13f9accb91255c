import type { ModelConfig } from '../model-config.js'
import { type ConfigFault, listed } from './fault.js'

/** What a number may be; `fix` says what to write instead. */
type Range = Readonly<{ least?: number; most?: number; fix?: string }>

/** A timer of Node that is set for longer ends at once. */
const mostTimerUs = (2 ** 31 - 1) * 1_000
const dayUs = 86_400_000_000

/** A request that is held back for longer has nobody left who waits for it. */
const heldBack: Range = { most: dayUs, fix: `write at most ${dayUs}, a day` }
const timeout: Range = { most: mostTimerUs, fix: `write at most ${mostTimerUs}, 24 days; 0 is no time-out` }
const size: Range = { least: 1 }

/** By path; `*` is any place of a list or key of a map. Numbers that others look at, or that may be any, are not here. */
const ranges: Readonly<Record<string, Range>> = {
  max_batch_size: { most: 2 ** 24, fix: `write the largest batch, at most ${2 ** 24}` },
  'dynamic_batching.max_queue_delay_microseconds': heldBack,
  'dynamic_batching.default_queue_policy.default_timeout_microseconds': timeout,
  'dynamic_batching.priority_queue_policy.*.default_timeout_microseconds': timeout,
  'sequence_batching.max_sequence_idle_microseconds': {
    most: mostTimerUs,
    fix: `write at most ${mostTimerUs}, 24 days; 0 is one second`,
  },
  'sequence_batching.direct.max_queue_delay_microseconds': heldBack,
  'sequence_batching.oldest.max_queue_delay_microseconds': heldBack,
  'sequence_batching.control_input.*.control.*.fp32_false_true.*': { fix: 'write numbers' },
  'model_warmup.*.count': { most: 10_000, fix: 'write how often it runs, at most 10000' },
  'optimization.graph.level': {
    least: -1,
    most: 2,
    fix: 'write -1 (basic), 1 (extended), 2 (none), or 0 for all optimizations',
  },
  'optimization.cuda.graph_spec.*.batch_size': { least: 0 },
  'optimization.cuda.graph_spec.*.input.*.dim.*': size,
  'optimization.cuda.graph_spec.*.graph_lower_bound.batch_size': { least: 0 },
  'optimization.cuda.graph_spec.*.graph_lower_bound.input.*.dim.*': size,
}

/** Numbers that no server can follow. */
export function rangeFaults(config: ModelConfig): readonly ConfigFault[] {
  const { name: model = '' } = config
  return [
    ...Object.entries(ranges).flatMap(([path, { least = -Infinity, most = Infinity, fix }]) =>
      valuesAt(config, path.split('.'))
        .filter(([, value]) => !Number.isFinite(value) || value < least || value > most)
        .map(([field, value]) => ({
          field,
          problem: `${field} must be a number${rangeText(least, most)} for ${model}: it is ${value}`,
          fix: fix ?? `write a number from ${least}`,
        })),
    ),
    ...elementFaults(config),
  ]
}

function rangeText(least: number, most: number): string {
  if (least === -Infinity) return most === Infinity ? '' : ` <= ${most}`
  return most === Infinity ? ` >= ${least}` : ` in range [${least}, ${most}]`
}

/** The numbers at a path, each with where it stands. */
function valuesAt(value: unknown, path: readonly string[], at = ''): readonly (readonly [string, number])[] {
  const [name, ...rest] = path
  if (value === undefined) return []
  if (name === undefined) return [[at, value as number]]
  if (name !== '*')
    return valuesAt((value as Record<string, unknown>)[name], rest, at === '' ? name : `${at}.${name}`)
  return Object.entries(value as object).flatMap(([key, each]) =>
    valuesAt(each, rest, `${at}[${Array.isArray(value) || /^\d+$/.test(key) ? key : JSON.stringify(key)}]`),
  )
}

/** More than any request carries, and more than the zeros that a model is tried with may take. */
const mostElements = 2 ** 28

/** Shapes of tensors that cannot be. */
function elementFaults(config: ModelConfig): readonly ConfigFault[] {
  const { name: model = '', input, output, sequence_batching: sequences, model_warmup } = config
  const shapes: readonly (readonly [string, readonly number[], number?])[] = [
    ...input.map(({ dims }, index) => [`input[${index}].dims`, dims] as const),
    ...output.map(({ dims }, index) => [`output[${index}].dims`, dims] as const),
    ...(sequences?.state ?? []).flatMap(({ dims, initial_state }, index) => [
      [`sequence_batching.state[${index}].dims`, dims] as const,
      ...initial_state.map(
        (initial, at) =>
          [`sequence_batching.state[${index}].initial_state[${at}].dims`, initial.dims] as const,
      ),
    ]),
    ...model_warmup.flatMap(({ batch_size = 0, inputs }, index) =>
      Object.entries(inputs).map(
        ([name, { dims }]) => [`model_warmup[${index}].inputs["${name}"].dims`, dims, batch_size] as const,
      ),
    ),
  ]
  return shapes.flatMap(([field, dims, batch = 1]) => {
    const elements = dims.reduce((product, each) => product * (each === -1 ? 1 : each), Math.max(1, batch))
    return elements <= mostElements
      ? []
      : [
          {
            field,
            problem: `${field} ${listed(dims)} of ${model} ${batch > 1 ? `and batch size ${batch} ` : ''}have ${elements} elements`,
            fix: `write a shape of at most ${mostElements}`,
          },
        ]
  })
}
