import type { ConfigProblem } from './config-error.js'
import { readSecret, type TextSources } from './interpolate.js'
import { bareSchema, keysOf, schemaAt, settingsOf, valueOfText, type Schema } from './schema-walk.js'
import { nearest } from './suggest.js'
import { comparePaths, formatPath, parsePath, type SettingPath } from './setting-path.js'

/** A setting that did not come from the file. `name` is the variable or flag a person typed. */
export type Override = Readonly<{
  path: SettingPath
  value: unknown
  file: 'environment' | 'command line'
  name: string
}>

type Overrides = Readonly<{ overrides: readonly Override[]; problems: readonly ConfigProblem[] }>

const prefix = 'GANTRY__'

/** `sinks.kafka.clientId` is `GANTRY__SINKS__KAFKA__CLIENT_ID`. */
export function variableOf(path: SettingPath): string {
  const steps = path.map((step) => String(step).replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2'))
  return `${prefix}${steps.join('__').toUpperCase()}`
}

/** The key a part of a variable name means: case and underscores do not count. */
function keyMeant(part: string, schema: Schema | undefined): string | number | undefined {
  if (schema === undefined) return undefined
  if (/^\d+$/.test(part)) return Number(part)
  const plain = part.replaceAll('_', '').toLowerCase()
  return keysOf(schema).find((key) => key.toLowerCase() === plain)
}

function pathOfVariable(parts: readonly string[], root: Schema): SettingPath | undefined {
  const path: (string | number)[] = []
  for (const part of parts) {
    const key = keyMeant(part, schemaAt(root, path))
    if (key === undefined) return undefined
    path.push(key)
  }
  return schemaAt(root, path) && path
}

/**
 * The settings given by `GANTRY__SECTION__KEY`, typed by the schema; lists and sections are JSON, `..._FILE` names a file
 * that holds the value.
 */
export function overridesOfEnvironment(root: Schema, sources: TextSources): Overrides {
  const overrides: Override[] = []
  const problems: ConfigProblem[] = []
  for (const [name, text] of Object.entries(sources.env)) {
    if (!name.startsWith(prefix) || text === undefined) continue
    const direct = pathOfVariable(name.slice(prefix.length).split('__'), root)
    const stem = name.endsWith('_FILE') ? name.slice(0, -'_FILE'.length) : undefined
    const path = direct ?? (stem && pathOfVariable(stem.slice(prefix.length).split('__'), root))
    if (path === undefined || path === '') {
      problems.push(unknownVariable(name, root))
      continue
    }
    const content = direct ? text : readSecret(text, sources)
    if (typeof content === 'string')
      overrides.push({ path, value: valueOfText(schemaAt(root, path), content), file: 'environment', name })
    else problems.push({ file: 'environment', path: name, ...content })
  }
  // The environment has no order of its own.
  overrides.sort((a, b) => comparePaths(a.path, b.path))
  return { overrides, problems: [...problems, ...givenTwice(overrides)] }
}

/** `HTTP_PORT` beside `HTTPPORT`, or `TOKEN` beside `TOKEN_FILE`: which of them would hold is anyone's guess. */
function givenTwice(overrides: readonly Override[]): ConfigProblem[] {
  return overrides.flatMap(({ path, name }, index) => {
    const other = overrides[index - 1]
    if (other === undefined || comparePaths(other.path, path) !== 0) return []
    const message = `sets ${formatPath(path)}, and so does ${other.name}`
    return [{ file: 'environment', path: name, message, hint: 'unset one of them' }]
  })
}

function unknownVariable(name: string, root: Schema): ConfigProblem {
  const near = nearest(
    name,
    [...settingsOf(root)].map(([path]) => variableOf(path)),
  )
  const hint = near
    ? `did you mean ${near}?`
    : 'docs/configuration.md lists the settings; unset it if it is not for Gantry'
  return { file: 'environment', path: name, message: 'no setting has this name', hint }
}

/** A flag: `--http-port 80` has the path `server.httpPort`; `--set key=value` names its path itself. */
export type FlagSetting = Readonly<{ flag: string; path: string; text: string }>

/** The settings given on the command line, typed by the schema like those of the environment. */
export function overridesOfFlags(root: Schema, flags: readonly FlagSetting[]): Overrides {
  const overrides: Override[] = []
  const problems: ConfigProblem[] = []
  for (const { flag, path: dotted, text } of flags) {
    const path = parsePath(dotted)
    const schema = schemaAt(root, path)
    if (schema) {
      overrides.push({ path, value: valueOfText(bareSchema(schema), text), file: 'command line', name: flag })
      continue
    }
    const known = [...settingsOf(root)].map(([setting]) => formatPath(setting))
    const near = nearest(formatPath(path.map((step) => (typeof step === 'number' ? 0 : step))), known)
    problems.push({
      file: 'command line',
      path: flag,
      message: `no setting is named "${dotted}"`,
      hint: near ? `did you mean "${near}"?` : 'docs/configuration.md lists the settings',
    })
  }
  return { overrides, problems }
}
