import protobuf from 'protobufjs'
import type { ModelConfig } from '../../repository/model-config.js'
import { modelConfigProto } from '../../repository/model-config-schema.js'
import { asObject, member, type JsonObject } from './json.js'

const modelConfigType = protobuf
  .parse(modelConfigProto, { keepCase: true })
  .root.resolveAll()
  .lookupType('inference.ModelConfig')

/**
 * A model's configuration as Triton's `/config` gives it: names of the schema, every primitive field, list and map there even when
 * it is the default, enums by name, 64-bit integers as numbers. Messages and members of a oneof are there when they are set.
 */
export function configJson(config: ModelConfig): JsonObject {
  return messageJson(modelConfigType, config)
}

function messageJson(type: protobuf.Type, message: JsonObject): JsonObject {
  return Object.fromEntries(
    type.fieldsArray.flatMap((field) => {
      const value = fieldJson(field, member(message, field.name))
      return value === undefined ? [] : [[field.name, value] as const]
    }),
  )
}

function fieldJson(field: protobuf.Field, value: unknown): unknown {
  const { resolvedType } = field
  const one = (item: unknown): unknown =>
    resolvedType instanceof protobuf.Type ? messageJson(resolvedType, asObject(item) ?? {}) : item
  if (field.map)
    return Object.fromEntries(Object.entries(asObject(value) ?? {}).map(([key, item]) => [key, one(item)]))
  if (field.repeated) return Array.isArray(value) ? value.map(one) : []
  if (value !== undefined && value !== null) return one(value)
  if (resolvedType instanceof protobuf.Type || field.partOf !== null) return undefined
  return resolvedType === null ? defaultOf(field.type) : resolvedType.valuesById[0]
}

function defaultOf(type: string): string | boolean | number {
  if (type === 'string' || type === 'bytes') return ''
  return type === 'bool' ? false : 0
}
