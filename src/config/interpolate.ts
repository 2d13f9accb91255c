import type { ConfigProblem } from './config-error.js'
import type { SettingPath } from './setting-path.js'

/** Where interpolation takes its values from; passed in, so that this file does no I/O. */
export type TextSources = Readonly<{
  env: Readonly<Record<string, string | undefined>>
  /** Content of a file without the line end it closes with. @throws whatever reading it throws. */
  readFile(path: string): string
}>

type Complaint = Pick<ConfigProblem, 'message' | 'hint'>
type Filled = Readonly<{ text: string; complaints: readonly Complaint[] }>

/**
 * Fills `${NAME}`, `${NAME:-default}` and `${file:PATH}` into a text; `$${` stands for `${` itself.
 *
 * An empty variable counts as unset where there is a default, as in a shell.
 */
export function interpolate(text: string, sources: TextSources): Filled {
  const complaints: Complaint[] = []
  const filled = text.replaceAll(
    /\$(\$\{)|\$\{([^}]*)(\}?)/g,
    (whole, escaped?: string, inner?: string, end?: string) => {
      if (escaped !== undefined) return escaped
      if (end === '') {
        complaints.push({ message: 'a "${" has no "}"', hint: 'close it, or write $${ for a plain ${' })
        return whole
      }
      const result = resolveReference(inner ?? '', sources)
      if (typeof result === 'string') return result
      complaints.push(result)
      return whole
    },
  )
  return { text: filled, complaints }
}

function resolveReference(inner: string, sources: TextSources): string | Complaint {
  const file = /^file:(.+)$/.exec(inner)?.[1]
  if (file !== undefined) return readSecret(file, sources)
  const [, name, fallback] = /^([A-Za-z_]\w*)(?::-(.*))?$/s.exec(inner) ?? []
  if (name === undefined)
    return {
      message: `"\${${inner}}" is not understood`,
      hint: 'write ${NAME}, ${NAME:-default} or ${file:PATH}, and $${ for a plain ${',
    }
  const value = sources.env[name]
  if (fallback !== undefined) return value === undefined || value === '' ? fallback : value
  if (value !== undefined) return value
  return {
    message: `the environment variable ${name} is not set`,
    hint: `export it, or give a default: \${${name}:-default}`,
  }
}

/** Reads a file that holds one value, such as a mounted secret. */
export function readSecret(path: string, sources: TextSources): string | Complaint {
  try {
    return sources.readFile(path)
  } catch (error) {
    return {
      message: `cannot read the value from ${path}: ${error instanceof Error ? error.message : String(error)}`,
      hint: 'relative paths start at the folder of the pipeline file',
    }
  }
}

/** Calls `visit` for every string inside `value`, however deep, and puts what it returns in its place. */
export function mapStrings(
  value: unknown,
  visit: (text: string, path: SettingPath) => unknown,
  path: SettingPath = [],
): unknown {
  if (typeof value === 'string') return visit(value, path)
  if (Array.isArray(value)) return value.map((item, index) => mapStrings(item, visit, [...path, index]))
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, mapStrings(item, visit, [...path, key])]),
  )
}
