import protobuf from 'protobufjs'
import { ModelConfigError } from './errors.js'
import { modelConfigType } from './model-config-text.js'
import type { ModelConfig } from './model-config.js'
import { type Json, parseUniqueJson } from './unique-json.js'

const integerTypes = new Set(['int32', 'uint32', 'int64', 'uint64'])

/**
 * Reads a `ModelConfig` from JSON with the names of the schema, as clients send it with a load request.
 *
 * 64-bit numbers may be texts, as protobuf's JSON writes them. `null` is a field that is not there.
 *
 * @param source - named in errors.
 * @throws ModelConfigError `GANTRY_MODEL_CONFIG` for text that is no JSON, an unknown field, one that is given twice, or a value of a
 *   wrong type.
 */
export function parseModelConfigJson(text: string, source: string): ModelConfig {
  const fail = (problem: string): never => {
    throw new ModelConfigError(
      `${source}: ${problem}`,
      'Send a ModelConfig as JSON, with the names of the schema.',
    )
  }
  const json = parsed(text, fail)
  const message = checkedMessage(modelConfigType, json, '', fail)
  checkChoices(modelConfigType, message, fail)
  return modelConfigType.toObject(modelConfigType.create(message), {
    longs: Number,
    enums: String,
    arrays: true,
    objects: true,
  }) as unknown as ModelConfig
}

type Fail = (problem: string) => never

function parsed(text: string, fail: Fail): Json {
  try {
    return parseUniqueJson(text)
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error))
  }
}

/** `create` passes over what it does not know and takes what does not fit, so everything is looked at before. */
function checkedMessage(type: protobuf.Type, value: Json, path: string, fail: Fail): Record<string, unknown> {
  if (!isObject(value)) return fail(`${path === '' ? 'the configuration' : path} must be an object`)
  const message: Record<string, unknown> = {}
  for (const [name, given] of Object.entries(value)) {
    const field = fieldOf(type, name)
    if (field === undefined) return fail(`${type.name}: unknown field '${name}'`)
    const at = path === '' ? field.name : `${path}.${field.name}`
    if (message[field.name] !== undefined) return fail(`${at} is given twice, by two names`)
    if (given !== null) message[field.name] = checkedField(field, given, at, fail)
  }
  return message
}

/** By its name in the schema, or as protobuf's JSON writes it, in camel case. */
function fieldOf(type: protobuf.Type, name: string): protobuf.Field | undefined {
  let byName = fieldsByName.get(type)
  if (byName === undefined) {
    const named = type.fieldsArray.flatMap((field) => [
      [protobuf.util.camelCase(field.name), field] as const,
      [field.name, field] as const,
    ])
    fieldsByName.set(type, (byName = new Map(named)))
  }
  return byName.get(name)
}

const fieldsByName = new WeakMap<protobuf.Type, ReadonlyMap<string, protobuf.Field>>()

function checkedField(field: protobuf.Field, value: Json, path: string, fail: Fail): unknown {
  field.resolve()
  if (field instanceof protobuf.MapField) {
    if (!isObject(value)) return fail(`${path} must be an object`)
    const isKey = field.keyType === 'string' ? /./s : /^(0|[1-9]\d*)$/
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) =>
        isKey.test(key)
          ? [key, checkedValue(field, each, `${path}["${key}"]`, fail)]
          : fail(`${path} has the key "${key}"`),
      ),
    )
  }
  if (!field.repeated) return checkedValue(field, value, path, fail)
  if (!isList(value)) return fail(`${path} must be a list`)
  return value.map((each, index) => checkedValue(field, each, `${path}[${index}]`, fail))
}

function checkedValue(field: protobuf.Field, value: Json, path: string, fail: Fail): unknown {
  const type = field.resolvedType
  if (type instanceof protobuf.Type) return checkedMessage(type, value, path, fail)
  if (type instanceof protobuf.Enum) return checkedEnum(type, value, path, fail)
  if (integerTypes.has(field.type)) return checkedInteger(field.type, value, path, fail)
  if (field.type === 'bool') return typeof value === 'boolean' ? value : fail(`${path} must be true or false`)
  if (field.type === 'string') return typeof value === 'string' ? value : fail(`${path} must be a text`)
  return typeof value === 'number' ? value : fail(`${path} must be a number`)
}

function checkedEnum(type: protobuf.Enum, value: Json, path: string, fail: Fail): unknown {
  if (typeof value === 'string' && type.values[value] !== undefined) return type.values[value]
  if (typeof value === 'number' && type.valuesById[value] !== undefined) return value
  return fail(`${path} must be one of ${Object.keys(type.values).join(', ')}`)
}

/** Numbers of 64 bits lose their last digits beyond what a number of JavaScript tells apart: no field may be so large. */
function checkedInteger(type: string, value: Json, path: string, fail: Fail): number {
  const number = typeof value === 'string' && /^-?\d{1,20}$/.test(value) ? Number(value) : value
  if (typeof number !== 'number' || !Number.isInteger(number)) return fail(`${path} must be a whole number`)
  const bits = Number(type.slice(-2))
  const [low, high] = type.startsWith('u') ? [0, 2 ** bits - 1] : [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1]
  return number >= low && number <= high ? number : fail(`${path} must be ${low} to ${high}`)
}

/** One scheduler, one version policy: the schema says which fields exclude each other. */
function checkChoices(type: protobuf.Type, message: Record<string, unknown>, fail: Fail): void {
  for (const choice of type.oneofsArray) {
    const given = choice.oneof.filter((name) => message[name] !== undefined)
    if (given.length > 1) fail(`${given.join(' and ')} exclude each other`)
  }
  for (const [name, value] of Object.entries(message)) {
    const field = type.fields[name]
    const inner = field?.resolvedType
    if (!(inner instanceof protobuf.Type)) continue
    const isMap = field instanceof protobuf.MapField
    const messages = isMap || Array.isArray(value) ? Object.values(value as object) : [value]
    for (const each of messages) checkChoices(inner, each as Record<string, unknown>, fail)
  }
}

function isObject(value: Json): value is { readonly [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value)
}
