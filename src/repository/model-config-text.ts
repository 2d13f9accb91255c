import { statSync } from 'node:fs'
import protobuf from 'protobufjs'
import textformat from 'protobufjs/ext/textformat.js'
import { EncodingError, readTextFile } from '../config/text-file.js'
import { isThere } from '../lifecycle/system-limit.js'
import { ModelConfigError } from './errors.js'
import { emptyModelConfig, type ModelConfig } from './model-config.js'
import { modelConfigProto } from './model-config-schema.js'

/** `inference.ModelConfig` of the public schema. */
export const modelConfigType = configType(modelConfigProto)

/**
 * The same with each map as the list of entries that it is in a file, where a key can stand twice. The reader of the text format would
 * keep the last of them in silence.
 */
const fileType = configType(
  modelConfigProto.replace(
    /map<(\w+), (\w+)> (\w+) = (\d+);/g,
    'message $3Entry { $1 key = 1; $2 value = 2; } repeated $3Entry $3 = $4;',
  ),
)

function configType(proto: string): protobuf.Type {
  return protobuf.parse(proto, { keepCase: true }).root.lookupType('inference.ModelConfig')
}

const maxConfigBytes = 4 * 1024 ** 2

/**
 * The configuration in a file; one that says nothing where there is no file.
 *
 * @throws ModelConfigError as {@link parseModelConfig}; SystemLimitError, and what else the file system throws
 */
export function readModelConfig(file: string): ModelConfig {
  if (!isThere(file)) return emptyModelConfig
  if (statSync(file).size > maxConfigBytes)
    throw new ModelConfigError(`${file} has more than ${maxConfigBytes} bytes`, 'It is no configuration.')
  return parseModelConfig(readConfigText(file), file)
}

function readConfigText(file: string): string {
  try {
    return readTextFile(file)
  } catch (error) {
    if (!(error instanceof EncodingError)) throw error
    throw new ModelConfigError(`${file} cannot be read: ${error.message}`, 'Save the file as UTF-8.', error)
  }
}

/**
 * Reads a `config.pbtxt` against the public schema.
 *
 * @param file - named in errors.
 * @throws ModelConfigError `GANTRY_MODEL_CONFIG` with `file:line:column` for a syntax error, an unknown field or a wrong type; with the
 *   path of the field for a key that is missing or has two values, and for a number that is none of an enumeration.
 */
export function parseModelConfig(text: string, file: string): ModelConfig {
  let message: protobuf.Message
  try {
    message = textformat.fromText(fileType, text)
  } catch (error) {
    throw located(error, text, file)
  }
  const lists = fileType.toObject(message, { longs: Number, enums: String })
  return withMaps(modelConfigType, lists, '', file) as unknown as ModelConfig
}

/** A configuration as the text of a `config.pbtxt`; what is empty is left out. */
export function modelConfigText(config: ModelConfig): string {
  return `${textformat.toText(modelConfigType, modelConfigType.fromObject(config)).trimEnd()}\n`
}

type Fields = Readonly<Record<string, unknown>>

/** A message of a file with its lists of entries as maps. */
function withMaps(type: protobuf.Type, message: Fields, path: string, file: string): Fields {
  const converted = (field: protobuf.Field, value: unknown, at: string): unknown => {
    const { resolvedType } = field.resolve()
    if (resolvedType instanceof protobuf.Type) return withMaps(resolvedType, value as Fields, `${at}.`, file)
    // An enumeration's number that has no name stays one.
    if (resolvedType instanceof protobuf.Enum && typeof value === 'number')
      throw new ModelConfigError(
        `${file}: ${at}: ${value} is none of ${resolvedType.name}`,
        `Write one of ${Object.keys(resolvedType.values).join(', ')}.`,
      )
    return value
  }
  return Object.fromEntries(
    type.fieldsArray.flatMap((field): [string, unknown][] => {
      const { name } = field
      const value = message[name]
      const at = path + name
      if (field instanceof protobuf.MapField) {
        const map = mapOf(field, (value ?? []) as readonly Entry[], at, file)
        return [
          [name, Object.fromEntries(map.map(([key, each, place]) => [key, converted(field, each, place)]))],
        ]
      }
      if (field.repeated) {
        const list = (value ?? []) as readonly unknown[]
        return [[name, list.map((each, index) => converted(field, each, `${at}[${index}]`))]]
      }
      return value === undefined ? [] : [[name, converted(field, value, at)]]
    }),
  )
}

type Entry = Readonly<{ key?: string | number; value?: unknown }>

/** @returns key, value and path of each; what an entry leaves out is a default, but for a key that is a name. */
function mapOf(
  { keyType, type }: protobuf.MapField,
  entries: readonly Entry[],
  path: string,
  file: string,
): readonly (readonly [string, unknown, string])[] {
  const isNamed = keyType === 'string'
  const found = new Map<string, readonly [string, unknown, string]>()
  for (const { key: given = isNamed ? '' : 0, value = type === 'string' ? '' : {} } of entries) {
    const key = String(given)
    if (key === '') throw new ModelConfigError(`${file}: ${path}: an entry has no key`, 'Write the key.')
    const place = `${path}[${isNamed ? JSON.stringify(key) : key}]`
    const before = found.get(key)
    const [first, second] = [before?.[1], value].map((each) => JSON.stringify(each))
    if (before !== undefined && first !== second)
      throw new ModelConfigError(
        `${file}: ${place}: the key is given twice, with ${first} and ${second}`,
        'Leave one of them.',
      )
    found.set(key, [key, value, place])
  }
  return [...found.values()]
}

function located(error: unknown, text: string, file: string): ModelConfigError {
  const message = error instanceof Error ? error.message : String(error)
  const problem = message.replace(/ \(line \d+\)$/, '').replace(/^\.inference\./, '')
  const lineNumber = Number(/ \(line (\d+)\)$/.exec(message)?.[1] ?? 0)
  const place = lineNumber === 0 ? placeOfValue(message, text) : placeOfToken(problem, text, lineNumber)
  const unknown = /^(?<message>[\w.]+): unknown field '(?<field>.*)'$/.exec(problem)?.groups
  const hint =
    unknown === undefined
      ? 'Correct the file; its form is described in docs/models.md.'
      : hintForField(unknown.message ?? '', unknown.field ?? '')
  return new ModelConfigError(`${file}:${place}: ${problem}`, hint, error)
}

/** For syntax errors the parser tells the line; the column is where the token it names stands in that line. */
function placeOfToken(problem: string, text: string, lineNumber: number): string {
  const line = (text.split('\n')[lineNumber - 1] ?? '').replace(/"[^"]*"|'[^']*'|#.*/g, (skipped) =>
    ' '.repeat(skipped.length),
  )
  const token = /'([^']+)'$/.exec(problem)?.[1] ?? ''
  const escaped = token.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  const at = token === '' ? -1 : line.search(new RegExp(/^\w+$/.test(token) ? `\\b${escaped}\\b` : escaped))
  return `${lineNumber}:${(at < 0 ? line.search(/\S|$/) : at) + 1}`
}

/**
 * For wrong values the parser tells no place. It reads from left to right, so the value is where the shortest beginning of the
 * text ends that fails in the same words.
 */
function placeOfValue(message: string, text: string): string {
  let passes = 0
  let fails = text.length
  while (fails - passes > 1) {
    const middle = Math.floor((passes + fails) / 2)
    if (errorIn(text.slice(0, middle)) === message) fails = middle
    else passes = middle
  }
  const before = text.slice(0, fails).replace(/("[^"\n]*"?|[^\s:{}[\],;<>]+)$/, '')
  const lineStart = before.lastIndexOf('\n') + 1
  return `${before.split('\n').length}:${before.length - lineStart + 1}`
}

function errorIn(text: string): string | undefined {
  try {
    textformat.fromText(fileType, text)
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function hintForField(messageName: string, field: string): string {
  const type = fileType.root.lookup(`inference.${messageName}`)
  const names = type instanceof protobuf.Type ? type.fieldsArray.map((known) => known.name) : []
  const [nearest] = names
    .map((name) => ({ name, distance: editDistance(name, field) }))
    .filter(({ name, distance }) => distance <= Math.max(2, name.length / 3))
    .sort((a, b) => a.distance - b.distance)
  return nearest === undefined
    ? `${messageName} has: ${names.join(', ')}.`
    : `Did you mean "${nearest.name}"? ${messageName} has: ${names.join(', ')}.`
}

/** Levenshtein distance. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, change))
    }
    row = next
  }
  return row[b.length] ?? 0
}
