import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import protobuf from 'protobufjs'
import { describe, expect, it } from 'vitest'
import type { Audience } from '../../src/repository/config-rules.js'
import { modelConfigType, parseModelConfig } from '../../src/repository/model-config-text.js'
import { checkSupported } from '../../src/repository/supported-config.js'

/** A field without fields of its own: its path, a configuration that sets it, and one that sets it to another value. */
type Leaf = Readonly<{ path: string; type: string; text: string; set: (value: string) => string }>

/** By message: fields that have to be there for another one of it to mean something. */
const companions: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '': { max_batch_size: ': 1' },
  'input.': { name: ': "in"', data_type: ': TYPE_FP32' },
  'output.': { name: ': "out"', data_type: ': TYPE_FP32' },
  'instance_group.rate_limiter.resources.': { name: ': "r"' },
  'optimization.execution_accelerators.gpu_execution_accelerator.': { name: ': "cuda"' },
  'optimization.execution_accelerators.cpu_execution_accelerator.': { name: ': "openvino"' },
  'dynamic_batching.default_queue_policy.': { default_timeout_microseconds: ': 1' },
  'dynamic_batching.priority_queue_policy.': { default_timeout_microseconds: ': 1' },
  'sequence_batching.direct.': { max_queue_delay_microseconds: ': 1', minimum_slot_utilization: ': 1' },
  'model_metrics.metric_control.': { metric_identifier: ' { family: "f" }' },
  'dynamic_batching.': { priority_levels: ': 1', default_priority_level: ': 1' },
  'sequence_batching.control_input.': { name: ': "c"', control: ' { int32_false_true: [ 0, 1 ] }' },
  'sequence_batching.state.': { input_name: ': "i"', output_name: ': "o"', data_type: ': TYPE_FP32' },
  'ensemble_scheduling.step.': { model_name: ': "m"' },
  'model_warmup.inputs.': { data_type: ': TYPE_FP32' },
}

/** Fields that mean something only with a value, or beside another field, of their own. */
const written: Readonly<Record<string, string>> = {
  // Another group beside it.
  'instance_group.passive': 'passive: true } instance_group {',
  'optimization.execution_accelerators.gpu_execution_accelerator.name': 'name: "tensorrt"',
  'optimization.execution_accelerators.gpu_execution_accelerator.parameters':
    'parameters { key: "use_tf32" value: "0" }',
  'optimization.execution_accelerators.cpu_execution_accelerator.name': 'name: "openvino"',
  'input.format': 'format: FORMAT_NHWC dims: [ 1, 2, 3 ]',
  'input.reshape.shape': 'shape: [ ]',
  'output.reshape.shape': 'shape: [ ]',
  'sequence_batching.control_input.control.kind': 'kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ]',
  'sequence_batching.control_input.control.int32_false_true': 'int32_false_true: [ 0, 1 ]',
  'sequence_batching.control_input.control.fp32_false_true': 'fp32_false_true: [ 0, 1 ]',
  'sequence_batching.control_input.control.bool_false_true': 'bool_false_true: [ false, true ]',
  'sequence_batching.state.initial_state.data_type': 'data_type: TYPE_FP32',
  'sequence_batching.control_input.control.data_type': 'kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64',
}

function leavesOf(type: protobuf.Type, prefix = ''): readonly Leaf[] {
  return type.fieldsArray.flatMap((field): readonly Leaf[] => {
    const path = prefix + field.name
    const message = field.resolve().resolvedType
    const beside = Object.entries(companions[prefix] ?? {}).flatMap(([name, value]) =>
      name === field.name ? [] : [` ${name}${value}`],
    )
    const wrap = (value: string) =>
      (field instanceof protobuf.MapField
        ? `${field.name} { key: ${field.keyType === 'string' ? '"k"' : 1} value${value} }`
        : `${field.name}${value}`) + beside.join('')
    const inner = message instanceof protobuf.Type ? leavesOf(message, `${path}.`) : []
    if (inner.length > 0)
      return inner.map((leaf) => ({
        ...leaf,
        text: wrap(` { ${leaf.text} }`),
        set: (value) => wrap(` { ${leaf.set(value)} }`),
      }))
    const own = written[path]
    const text = own === undefined ? wrap(valueOf(field, message)) : own + beside.join('')
    return [{ path, type: field.type, text, set: (value) => wrap(`: ${value}`) }]
  })
}

/** Another value than the default where there is one. */
function valueOf({ type }: protobuf.Field, resolved: protobuf.ReflectionObject | null): string {
  if (resolved instanceof protobuf.Type) return ' { }'
  if (resolved instanceof protobuf.Enum)
    return `: ${Object.keys(resolved.values)[1] ?? Object.keys(resolved.values)[0]}`
  return type === 'string' ? ': "x"' : type === 'bool' ? ': true' : ': 1'
}

function outcome(text: string, audience: Audience): 'used' | 'refused' | 'warned' {
  const config = parseModelConfig(text, 'config.pbtxt')
  try {
    return checkSupported(config, 'config.pbtxt', audience).length > 0 ? 'warned' : 'used'
  } catch {
    return 'refused'
  }
}

/** What docs/models.md says of a field: the row that names it or the nearest field above it. An empty last cell: for cameras too. */
function documented(): ReadonlyMap<string, Readonly<Record<Audience, string>>> {
  const page = readFileSync(join(import.meta.dirname, '../../docs/models.md'), 'utf8')
  const table = page.slice(page.indexOf('### Every field'), page.indexOf('## Detectors that are understood'))
  const rows = [...table.matchAll(/^\| (`.*`)\s*\| (\w+)[^|]*\|(?: (\w+)[,:] [^|]*)? \|$/gm)]
  return new Map(
    rows.flatMap(([, fields = '', server = '', cameras = server]) =>
      [...fields.matchAll(/`([\w.]+)`/g)].map(([, field = '']) => [field, { server, cameras }]),
    ),
  )
}

const leaves = leavesOf(modelConfigType)
const table = documented()

function rowOf(path: string): Readonly<Record<Audience, string>> | undefined {
  const parts = path.split('.')
  const above = parts.map((_, index) => parts.slice(0, parts.length - index).join('.'))
  return above.map((field) => table.get(field)).find((row) => row !== undefined)
}

describe('the table of docs/models.md', () => {
  it('has every field of ModelConfig, and no other', () => {
    expect(leaves.filter(({ path }) => rowOf(path) === undefined)).toEqual([])
    const isField = (field: string) => leaves.some(({ path }) => `${path}.`.startsWith(`${field}.`))
    expect([...table.keys()].filter((field) => !isField(field))).toEqual([])
    expect(leaves.length).toBeGreaterThan(100)
  })

  it.each(leaves)('says what becomes of $path', ({ path, text }) => {
    expect({ server: outcome(text, 'server'), cameras: outcome(text, 'cameras') }).toEqual(rowOf(path))
  })
})

/** The largest and the smallest that a file can say. */
const extremes: Readonly<Record<string, readonly string[]>> = {
  int32: ['2147483647', '-2147483648'],
  int64: ['9223372036854775807', '-9223372036854775808'],
  uint32: ['4294967295'],
  uint64: ['18446744073709551615'],
  float: ['nan', 'inf', '-inf'],
  double: ['nan'],
}

/** Those that may be any: they are compared with what there is, or handed to the model. */
const anyNumber: readonly string[] = [
  'instance_group.rate_limiter.resources.count',
  'instance_group.rate_limiter.priority',
  'version_policy.latest.num_versions 4294967295',
  'version_policy.specific.versions 9223372036854775807',
  'instance_group.gpus 2147483647',
  'optimization.cuda.graph_spec.batch_size 2147483647',
  'optimization.cuda.graph_spec.input.dim 9223372036854775807',
  'optimization.cuda.graph_spec.graph_lower_bound.batch_size 2147483647',
  'optimization.cuda.graph_spec.graph_lower_bound.input.dim 9223372036854775807',
  'optimization.gather_kernel_buffer_threshold',
  'dynamic_batching.default_queue_policy.max_queue_size',
  'dynamic_batching.priority_queue_policy.max_queue_size',
  'ensemble_scheduling.step.model_version 9223372036854775807',
  'ensemble_scheduling.max_inflight_requests',
]

describe('a number as large or small as can be', () => {
  const numbers = leaves.flatMap((leaf) => (extremes[leaf.type] ?? []).map((value) => ({ ...leaf, value })))

  it.each(numbers)('$path: $value is refused, unless it means something', ({ path, value, set }) => {
    const mayBe = anyNumber.includes(path) || anyNumber.includes(`${path} ${value}`)
    expect(outcome(set(value), 'server') === 'refused').toBe(!mayBe)
  })

  it('is known by its path', () => {
    const paths = new Set(numbers.flatMap(({ path, value }) => [path, `${path} ${value}`]))
    expect(anyNumber.filter((path) => !paths.has(path))).toEqual([])
  })
})

describe('fields that depend on others', () => {
  it.each([
    ['instance_group { }', 'refused'],
    ['optimization { graph { level: 1 } }', 'refused'],
    ['model_warmup { name: "w" }', 'refused'],
    ['response_cache { enable: true }', 'used'],
  ])('an ensemble with %s is %s', (text, expected) => {
    expect(outcome(`ensemble_scheduling { } ${text}`, 'server')).toBe(expected)
  })

  it.each([
    ['instance_group { kind: KIND_MODEL }', 'warned'],
    ['dynamic_batching { default_priority_level: 1 }', 'warned'],
    ['backend: "js" instance_group { kind: KIND_GPU }', 'warned'],
    ['backend: "kserve" instance_group { count: 3 }', 'used'],
    ['input { name: "a" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, -1 ] }', 'refused'],
    ['parameters { key: "memory.enable_memory_arena_shrinkage" value { string_value: "cpu:0" } }', 'used'],
    ['parameters { key: "memory.enable_arena" value { string_value: "1" } }', 'warned'],
    ['parameters { key: "gpu_mem_limit" value { string_value: "1" } }', 'used'],
    ['optimization { cuda { graphs: true } }', 'used'],
    ['optimization { cuda { graphs: true busy_wait_events: true } }', 'warned'],
    ['backend: "js" optimization { cuda { graphs: true } }', 'warned'],
    [
      'optimization { execution_accelerators { gpu_execution_accelerator { name: "auto_mixed_precision" } } }',
      'warned',
    ],
  ])('%s is %s', (text, expected) => {
    expect(outcome(text, 'server')).toBe(expected)
  })
})
