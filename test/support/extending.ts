import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = join(import.meta.dirname, '../../docs/extending')

/** One thing that a page of `docs/extending` tells to do. Paths start at the root of the repository. */
export type Step =
  | Readonly<{ kind: 'create'; path: string; text: string }>
  | Readonly<{ kind: 'change'; path: string; before: string; after: string }>
  | Readonly<{ kind: 'run'; commands: readonly string[] }>

/** The pages with steps, by name. */
export const extendingPages = readdirSync(folder)
  .filter((name) => name !== 'README.md')
  .map((name) => name.replace('.md', ''))

/** The steps of a page: code below "Create `path`:", "In `path`:" and "Run:", in its order. */
export function stepsOf(page: string): readonly Step[] {
  const text = readFileSync(join(folder, `${page}.md`), 'utf8')
  const blocks = text.matchAll(/^(Create|In|Run)(?: `([^`]+)`)?:\n\n```\w+\n(.*?)^```$/gms)
  return [...blocks].map(([, word, path = '', code = '']) => {
    if (word === 'Create') return { kind: 'create', path, text: code }
    if (word === 'In') return { kind: 'change', path, before: without(code, '+'), after: without(code, '-') }
    return { kind: 'run', commands: code.trim().split('\n') }
  })
}

/** The lines of a diff but those of one sign. */
function without(diff: string, sign: string): string {
  const lines = diff.split(/(?<=\n)/).filter((line) => !line.startsWith(sign))
  return lines.map((line) => (line === '\n' ? line : line.slice(1))).join('')
}

/** What a file is after a step. @throws when the step does not fit the file. */
export function changed(root: string, step: Exclude<Step, { kind: 'run' }>): string {
  const path = join(root, step.path)
  if (step.kind === 'create') {
    if (existsSync(path)) throw new Error(`${step.path} is there already`)
    return step.text
  }
  const parts = readFileSync(path, 'utf8').split(step.before)
  if (parts.length === 2) return parts.join(step.after)
  throw new Error(`${step.path} has these lines ${parts.length - 1} times:\n${step.before}`)
}
