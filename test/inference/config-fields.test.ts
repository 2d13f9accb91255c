import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import protobuf from 'protobufjs'
import { describe, expect, it } from 'vitest'
import type { Audience } from '../../src/inference/config-rules.js'
import { modelConfigType, parseModelConfig } from '../../src/inference/model-config-text.js'
import { checkSupported } from '../../src/inference/supported-config.js'

/** A field without fields of its own: its path, and a configuration that sets it. */
type Leaf = Readonly<{ path: string; text: string }>

/** Fields that have to be there for another one to be well formed. */
const companions: Readonly<Record<string, string>> = { 'input.format': 'dims: [ 1, 2, 3 ]' }

function leavesOf(type: protobuf.Type, prefix = ''): readonly Leaf[] {
  return type.fieldsArray.flatMap((field): readonly Leaf[] => {
    const path = prefix + field.name
    const message = field.resolve().resolvedType
    const wrap = (value: string) =>
      field instanceof protobuf.MapField
        ? `${field.name} { key: ${field.keyType === 'string' ? '"k"' : 1} value${value} }`
        : `${field.name}${value}`
    const inner = message instanceof protobuf.Type ? leavesOf(message, `${path}.`) : []
    if (inner.length > 0) return inner.map((leaf) => ({ path: leaf.path, text: wrap(` { ${leaf.text} }`) }))
    return [{ path, text: `${wrap(valueOf(field, message))} ${companions[path] ?? ''}` }]
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

/** What docs/models.md says of a field: the row that names it or the nearest field above it. */
function documented(): ReadonlyMap<string, Readonly<Record<Audience, string>>> {
  const page = readFileSync(join(import.meta.dirname, '../../docs/models.md'), 'utf8')
  const table = page.slice(page.indexOf('### Every field'), page.indexOf('## Detectors that are understood'))
  const rows = [...table.matchAll(/^\| (`.*`)\s*\| (\w+)[^|]*\| (\w+)[^|]*\|$/gm)]
  return new Map(
    rows.flatMap(([, fields = '', server = '', cameras = '']) =>
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
    ['backend: "js" instance_group { kind: KIND_GPU }', 'warned'],
    ['backend: "kserve" instance_group { count: 3 }', 'used'],
    ['input { name: "a" format: FORMAT_NCHW dims: [ 3, -1 ] }', 'refused'],
    ['parameters { key: "memory.enable_memory_arena_shrinkage" value { string_value: "cpu:0" } }', 'warned'],
  ])('%s is %s', (text, expected) => {
    expect(outcome(text, 'server')).toBe(expected)
  })
})
