import type { z } from 'zod'
import { BadRequestError, type FieldProblem } from './errors.js'

/**
 * The value as the schema has it, defaults filled in.
 *
 * @param what - names the part of the request in the message: `body`, `query`, `path`.
 * @throws BadRequestError `GANTRY_BAD_REQUEST` with all problems at once.
 */
export function parseRequest<S extends z.ZodType>(schema: S, value: unknown, what: string): z.output<S> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const problems = fieldProblems(parsed.error)
  const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`
  throw new BadRequestError(`the ${what} has ${count}`, problems)
}

/** One problem per field; an object with three unknown keys gives three. */
export function fieldProblems(error: z.ZodError): FieldProblem[] {
  return error.issues.flatMap((issue) => {
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map((key) => ({
        path: fieldPath([...issue.path, key]),
        message: 'is not known here',
      }))
    const missing = issue.code === 'invalid_type' && issue.message.endsWith('received undefined')
    return [{ path: fieldPath(issue.path), message: missing ? 'is required' : issue.message }]
  })
}

function fieldPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`
    return text === '' ? String(key) : `${text}.${String(key)}`
  }, '')
}
