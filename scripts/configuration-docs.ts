// Part of `npm run schemas`: writes the tables of docs/configuration.md from the schema that the pipeline file is checked with.
import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { pipelineJsonSchema } from '../src/config/pipeline-json-schema.js'

type Node = Readonly<{
  type?: string
  description?: string
  default?: unknown
  const?: unknown
  enum?: readonly unknown[]
  pattern?: string
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  properties?: Readonly<Record<string, Node>>
  items?: Node
  anyOf?: readonly Node[]
  required?: readonly string[]
}>

export type Setting = Readonly<{ path: string; kind: string; fallback: string; meaning: string }>

const marks = {
  start: '<!-- settings: start, written by `npm run schemas` -->',
  end: '<!-- settings: end -->',
}
export const configurationPage = fileURLToPath(new URL('../docs/configuration.md', import.meta.url))

/** Every setting that holds a value, in the order of the schema. */
export function settings(node: Node = pipelineJsonSchema(), path = ''): Setting[] {
  return Object.entries(node.properties ?? {}).flatMap(([key, child]) => {
    const here = path === '' ? key : `${path}.${key}`
    if (child.properties && Object.keys(child.properties).length > 0) return settings(child, here)
    if (child.items?.properties) return settings(child.items, `${here}[]`)
    const required = node.required?.includes(key) === true && child.default === undefined
    const fallback =
      child.default === undefined ? (required ? '**required**' : '') : code(JSON.stringify(child.default))
    // A section that may stand in the place of a single value.
    const section = child.anyOf?.find(({ properties }) => properties !== undefined)
    const inner = section === undefined ? [] : settings(section, here)
    return [{ path: here, kind: kindOf(child), fallback, meaning: child.description ?? '' }, ...inner]
  })
}

function kindOf(node: Node): string {
  if (node.const !== undefined) return code(JSON.stringify(node.const))
  if (node.enum) return node.enum.map((value) => code(String(value))).join(', ')
  if (node.anyOf) return node.anyOf.map(kindOf).join(' or ')
  if (node.type === 'array') return `list of ${node.items?.type ? kindOf(node.items) : 'nothing yet'}`
  const words: Readonly<Record<string, string>> = {
    integer: 'whole number',
    object: 'section',
    string: 'text',
  }
  const word = words[node.type ?? ''] ?? node.type ?? ''
  const low = node.exclusiveMinimum === undefined ? node.minimum : `over ${node.exclusiveMinimum}`
  const high = node.maximum === Number.MAX_SAFE_INTEGER ? undefined : node.maximum
  const range = [low, high].filter((limit) => limit !== undefined && limit !== Number.MIN_SAFE_INTEGER)
  return range.length === 0
    ? word
    : `${word}, ${range.length === 2 ? range.join(' to ') : `from ${range[0]}`}`
}

const code = (text: string) => `\`${text}\``

/** One table for each section of the pipeline file. */
export function configurationTables(): string {
  const sections = new Map<string, Setting[]>()
  for (const setting of settings()) {
    const section = setting.path.includes('.') ? (setting.path.split('.')[0] ?? '') : ''
    sections.set(section, [...(sections.get(section) ?? []), setting])
  }
  return [...sections]
    .map(([section, rows]) => {
      const title = section === '' ? '## Top level' : `## \`${section}\``
      const lines = rows.map(
        ({ path, kind, fallback, meaning }) =>
          `| \`${path}\` | ${kind} | ${fallback} | ${meaning.replaceAll('|', '\\|')} |`,
      )
      return [
        title,
        '',
        '| setting | value | default | meaning |',
        '| --- | --- | --- | --- |',
        ...lines,
      ].join('\n')
    })
    .join('\n\n')
}

/** The page with its tables replaced. */
export function withTables(page: string): string {
  const [before, rest] = page.split(marks.start)
  const after = rest?.split(marks.end)[1]
  if (before === undefined || after === undefined) throw new Error(`${configurationPage} has lost its marks`)
  return `${before}${marks.start}\n\n${configurationTables()}\n\n${marks.end}${after}`
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await writeFile(configurationPage, withTables(await readFile(configurationPage, 'utf8')))
