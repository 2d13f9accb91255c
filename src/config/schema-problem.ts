import { type z } from 'zod'
import { isOfLogin, isSecretSetting, redactText } from './redact.js'
import { keysOf, schemaAt, settingsOf, type Schema } from './schema-walk.js'
import { formatPath, getAt, type SettingPath } from './setting-path.js'
import { nearest, suggestion } from './suggest.js'

/** What the schema complains about, in words for the person who wrote the settings. */
export type Complaint = Readonly<{
  path: SettingPath
  /** The complaint is about the key, not about its value. */
  aboutKey: boolean
  message: string
  hint?: string
}>

type Issue = z.core.$ZodIssue

/** One schema issue as complaints: an issue about unknown keys names several. */
export function complaintsOf(issue: Issue, root: Schema, values: unknown): Complaint[] {
  const path = issue.path.filter((step) => typeof step !== 'symbol')
  if (issue.code === 'invalid_union') return choiceComplaints(issue, path, root, values)
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => unknownKey(path, key, root))
  const isSecret = isSecretSetting(String(path.at(-1)), true)
  return [{ path, aboutKey: false, ...worded(issue, getAt(values, path), isSecret) }]
}

/** Where one of several forms may stand: about the one that was meant, by its type. */
function choiceComplaints(
  issue: z.core.$ZodIssueInvalidUnion,
  path: SettingPath,
  root: Schema,
  values: unknown,
): Complaint[] {
  if (issue.message !== 'Invalid input')
    return [{ path, aboutKey: false, message: redactText(issue.message) }]
  const isOfType = (issues: readonly Issue[]) =>
    !issues.some(({ code, path: at }) => code === 'invalid_type' && at.length === 0)
  const meant = issue.errors.find(isOfType)
  if (meant !== undefined)
    return meant.flatMap((inner) => complaintsOf({ ...inner, path: [...path, ...inner.path] }, root, values))
  const types = issue.errors.flatMap((issues) =>
    issues.flatMap((inner) => (inner.code === 'invalid_type' ? [typeWord(inner.expected)] : [])),
  )
  const value = getAt(values, path)
  const last = String(path.at(-1))
  const kind = isSecretSetting(last, true) || isOfLogin(last) ? plainKindOf(value) : kindOf(value)
  return [{ path, aboutKey: false, message: `must be ${types.join(' or ')}, not ${kind}` }]
}

function unknownKey(path: SettingPath, key: string, root: Schema): Complaint {
  const known = keysOf(schemaAt(root, path) ?? root)
  const complaint = { path: [...path, key], aboutKey: true, message: 'unknown key' }
  if (nearest(key, known) === undefined) {
    const [elsewhere] = [...settingsOf(root)]
      .flatMap(([setting]) => (setting.at(-1) === key ? [setting] : []))
      .sort((a, b) => a.length - b.length)
    if (elsewhere)
      return { ...complaint, hint: `did you mean ${formatPath(elsewhere).replaceAll('[0]', '[]')}?` }
  }
  const hint = suggestion(key, known)
  return hint === undefined ? complaint : { ...complaint, hint }
}

function worded(issue: Issue, value: unknown, isSecret: boolean): { message: string; hint?: string } {
  const custom = redactText(issue.message)
  switch (issue.code) {
    case 'invalid_type':
      if (!issue.message.startsWith('Invalid input')) return { message: custom }
      if (value === undefined) return { message: `missing: ${typeWord(issue.expected)} is needed` }
      if (typeof value === 'number' && !Number.isFinite(value) && issue.expected !== 'string')
        return { message: `must be a finite number, not ${kindOf(value)}` }
      return wrongType(issue.expected, value, isSecret)
    case 'invalid_value': {
      const values = issue.values.map(String)
      const message = `must be ${values.length === 1 ? '' : 'one of '}${values.join(', ')}`
      if (value === undefined) return { message: `missing: ${message}` }
      const near = typeof value === 'string' && values.length > 1 ? nearest(value, values) : undefined
      return near ? { message, hint: `did you mean "${near}"?` } : { message }
    }
    case 'invalid_key':
      return { message: redactText(issue.issues[0]?.message ?? custom) }
    case 'too_small':
      return {
        message: bound(issue.origin, issue.inclusive === false ? 'more than' : 'at least', issue.minimum),
      }
    case 'too_big':
      return {
        message: bound(issue.origin, issue.inclusive === false ? 'less than' : 'at most', issue.maximum),
      }
    default:
      return { message: custom }
  }
}

function wrongType(expected: string, value: unknown, isSecret: boolean): { message: string; hint?: string } {
  const message = `must be ${typeWord(expected)}, not ${isSecret ? plainKindOf(value) : kindOf(value)}`
  const unquoted = expected === 'string' && (typeof value === 'number' || typeof value === 'boolean')
  if (expected === 'array' && typeof value === 'string') return { message, hint: 'write it like ["a", "b"]' }
  return unquoted ? { message, hint: `write it in quotes: "${isSecret ? '...' : value}"` } : { message }
}

function bound(origin: string, relation: string, limit: number | bigint): string {
  if (origin === 'string') return `must have ${relation} ${limit} character${limit === 1 ? '' : 's'}`
  if (origin === 'array') return `must have ${relation} ${limit} entr${limit === 1 ? 'y' : 'ies'}`
  return `must be ${relation} ${limit}`
}

const typeWords: Readonly<Record<string, string>> = {
  int: 'a whole number',
  number: 'a number',
  string: 'a text',
  boolean: 'true or false',
  array: 'a list',
  object: 'a section of settings',
}

function typeWord(expected: string): string {
  return typeWords[expected] ?? expected
}

/** The same of a value that is not shown. */
function plainKindOf(value: unknown): string {
  if (typeof value === 'number') return 'a number'
  return typeof value === 'boolean' ? 'true or false' : kindOf(value)
}

function kindOf(value: unknown): string {
  if (value === null) return 'empty'
  if (Array.isArray(value)) return 'a list'
  if (Number.isNaN(value)) return '.nan'
  if (value === Infinity || value === -Infinity) return value > 0 ? '.inf' : '-.inf'
  if (typeof value === 'number') return `the number ${value}`
  if (typeof value === 'boolean') return String(value)
  return typeof value === 'string' ? 'a text' : 'a section of settings'
}
