import protobuf from 'protobufjs'
import textformat from 'protobufjs/ext/textformat.js'
import { ModelConfigError } from './errors.js'
import type { ModelConfig } from './model-config.js'
import { modelConfigProto } from './model-config-schema.js'

/** `inference.ModelConfig` of the public schema. */
export const modelConfigType = protobuf
  .parse(modelConfigProto, { keepCase: true })
  .root.lookupType('inference.ModelConfig')

/**
 * Reads a `config.pbtxt` against the public schema.
 *
 * @param file - named in errors.
 * @throws ModelConfigError `GANTRY_MODEL_CONFIG` with `file:line:column` for a syntax error, an unknown field or a wrong type.
 */
export function parseModelConfig(text: string, file: string): ModelConfig {
  let message: protobuf.Message
  try {
    message = textformat.fromText(modelConfigType, text)
  } catch (error) {
    throw located(error, text, file)
  }
  return plainConfig(message)
}

/** A message as the plain object that the rest of the program uses. */
export function plainConfig(message: protobuf.Message): ModelConfig {
  return modelConfigType.toObject(message, {
    longs: Number,
    enums: String,
    arrays: true,
    objects: true,
  }) as unknown as ModelConfig
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
    textformat.fromText(modelConfigType, text)
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function hintForField(messageName: string, field: string): string {
  const type = modelConfigType.root.lookup(`inference.${messageName}`)
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
