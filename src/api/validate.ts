import type { z } from 'zod'
import { keysOf, schemaAt } from '../config/schema-walk.js'
import { suggestion } from '../config/suggest.js'
import { BadRequestError, type FieldProblem } from './errors.js'

/**
 * The value as the schema has it, defaults filled in.
 *
 * @param what - names the part of the request in the message: `body`, `query`, `path`.
 * @param beyond - what is wrong with it that the schema does not say; told beside what the schema says.
 * @throws BadRequestError `GANTRY_BAD_REQUEST` with all problems at once.
 */
export function parseRequest<S extends z.ZodType>(
  schema: S,
  value: unknown,
  what: string,
  beyond: (value: unknown) => readonly FieldProblem[] = () => [],
): z.output<S> {
  const parsed = schema.safeParse(value)
  const others = beyond(value)
  // One by itself is refused by the handler, under a code of its own.
  if (parsed.success && others.length < 2) return parsed.data
  const problems = [...(parsed.success ? [] : fieldProblems(parsed.error, schema)), ...others]
  const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`
  throw new BadRequestError(`the ${what} has ${count}`, problems)
}

/** One problem per field; an object with three unknown keys gives three. */
function fieldProblems(error: z.ZodError, schema: z.ZodType): FieldProblem[] {
  return error.issues.flatMap((issue) => {
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map((key) => ({
        path: fieldPath([...issue.path, key]),
        message: unknownField(key, issue.path, schema),
      }))
    return [{ path: fieldPath(issue.path), message: messageOf(issue) }]
  })
}

function unknownField(key: string, within: readonly PropertyKey[], schema: z.ZodType): string {
  const path = within.filter((step) => typeof step !== 'symbol')
  const hint = suggestion(key, keysOf(schemaAt(schema, path) ?? schema))
  return hint === undefined ? 'is not known here' : `is not known here; ${hint}`
}

/** Own words where the library's talk of types; a message of the schema itself stays. */
function messageOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      if (issue.message.endsWith('received undefined')) return 'is required'
      return issue.message.startsWith('Invalid input') ? `must be ${article(issue.expected)}` : issue.message
    case 'too_small':
      if (issue.origin === 'string' && issue.minimum === 1) return 'must not be empty'
      return `must be ${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}${lengthUnit(issue.origin)}`
    case 'too_big':
      return `must be ${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum}${lengthUnit(issue.origin)}`
    case 'invalid_value':
      return `must be ${issue.values.map((value) => String(value)).join(' or ')}`
    default:
      return issue.message
  }
}

function article(type: string): string {
  const name = type === 'int' ? 'whole number' : type
  return `${/^[aeiou]/.test(name) ? 'an' : 'a'} ${name}`
}

function lengthUnit(origin: string): string {
  return origin === 'string' ? ' characters long' : ''
}

function fieldPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`
    return text === '' ? String(key) : `${text}.${String(key)}`
  }, '')
}
