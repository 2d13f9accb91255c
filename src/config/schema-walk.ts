import { z } from 'zod'
import type { SettingPath } from './setting-path.js'

export type Schema = z.core.$ZodType

/** What remains of a schema when `optional`, `nullable`, `default` and `prefault` are taken off. */
export function bareSchema(schema: Schema): Schema {
  let bare = schema
  while (
    bare instanceof z.ZodOptional ||
    bare instanceof z.ZodNullable ||
    bare instanceof z.ZodDefault ||
    bare instanceof z.ZodPrefault
  )
    bare = bare.unwrap()
  return bare
}

/** Settings that may stand directly inside this one; empty for anything but a section. */
export function keysOf(schema: Schema): readonly string[] {
  return Object.keys(shapeOf(bareSchema(schema)))
}

/** The schema of one setting, without its wrappers; undefined for a path that no setting has. */
export function schemaAt(root: Schema, path: SettingPath): Schema | undefined {
  let at: Schema | undefined = bareSchema(root)
  for (const step of path) {
    const inner: Schema | undefined = at && schemaInside(at, step)
    at = inner && bareSchema(inner)
  }
  return at
}

function schemaInside(parent: Schema, step: string | number): Schema | undefined {
  if (typeof step === 'number') return listOf(parent)?.element ?? undefined
  if (parent instanceof z.ZodRecord) return parent.valueType
  return Object.entries(shapeOf(parent)).find(([key]) => key === step)?.[1]
}

/** A list itself, or the one of several forms that is one. */
function listOf(schema: Schema): z.ZodArray<Schema> | undefined {
  if (isList(schema)) return schema
  return schema instanceof z.ZodUnion ? schema.options.map(bareSchema).find(isList) : undefined
}

function isList(schema: Schema): schema is z.ZodArray<Schema> {
  return schema instanceof z.ZodArray
}

/** Of a text or a switch in whose place a section may stand, that of the section. */
function shapeOf(schema: Schema): Readonly<Record<string, Schema>> {
  const { def } = schema._zod
  if (schema instanceof z.ZodUnion)
    return Object.assign({}, ...schema.options.map((option) => shapeOf(bareSchema(option)))) as Record<
      string,
      Schema
    >
  return def.type === 'object' ? (def as z.core.$ZodObjectDef).shape : {}
}

/** Every setting with its path, sections included; an array stands for its elements by the index 0. */
export function* settingsOf(
  root: Schema,
  path: SettingPath = [],
): Generator<readonly [SettingPath, Schema], void> {
  const bare = bareSchema(root)
  if (isList(bare)) yield* settingsOf(bare.element, [...path, 0])
  for (const [key, schema] of Object.entries(shapeOf(bare))) {
    yield [[...path, key], schema]
    yield* settingsOf(schema, [...path, key])
  }
}

/**
 * The value that a text from the environment, a flag or an interpolation stands for: the schema says whether a number, a
 * boolean, a list or section (JSON) or the text itself is meant. Text that fits none stays text, for the schema to refuse.
 */
export function valueOfText(schema: Schema | undefined, text: string): unknown {
  if (schema instanceof z.ZodNumber)
    return /^\s*[-+]?[\d.]+(e[-+]?\d+)?\s*$/i.test(text) ? Number(text) : text
  if (schema instanceof z.ZodBoolean) return { true: true, false: false }[text.trim()] ?? text
  if (schema instanceof z.ZodArray || schema instanceof z.ZodObject || schema instanceof z.ZodRecord)
    return parsedJson(text)
  return schema instanceof z.ZodUnion ? valueOfChoice(schema.options, text) : text
}

/** One text, or a list of them; a switch, or a section in its place. */
function valueOfChoice(options: readonly Schema[], text: string): unknown {
  const start = text.trimStart()[0]
  if (start === '[' || start === '{') return parsedJson(text)
  const option = options.find((candidate) => candidate instanceof z.ZodBoolean)
  return valueOfText(option, text)
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}
