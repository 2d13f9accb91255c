import { ApiError } from '../api/client.js'
import type { FormValues } from './camera-form.js'

/** What is wrong with a form: in a sentence, and by field. */
export type FormFailure = Readonly<{ text: string; hint: string; byField: Readonly<Record<string, string>> }>

/** @param values - of the form, whose fields have a place for what is wrong with them. */
export function failureOf(error: unknown, values: FormValues): FormFailure {
  if (!(error instanceof ApiError))
    return { text: error instanceof Error ? error.message : 'That did not work.', hint: '', byField: {} }
  const { detail, hint, problems } = error.problem
  const byField = Object.fromEntries(problems.map(({ path, message }) => [path, message]))
  const homeless = problems
    .filter(({ path }) => !(path in values))
    .map(({ path, message }) => `${path} ${message}`)
  if (problems.length === 0) return { text: detail, hint, byField }
  const text =
    problems.length === 1 ? 'One field needs a correction.' : `${problems.length} fields need a correction.`
  return { text, hint: homeless.join('; '), byField }
}
