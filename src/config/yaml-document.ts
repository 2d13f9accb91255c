import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
  type Alias,
  type Document,
  type ErrorCode,
  type Node,
} from 'yaml'
import type { ConfigProblem } from './config-error.js'
import { isOfLogin } from './redact.js'
import type { SettingPath } from './setting-path.js'

export type Place = Readonly<{ line: number; column: number }>

const tooDeep = 'sections and lists are nested too deeply'

/** For mistakes that YAML tells in words of its grammar, or of the library that reads it. */
const plainWords: Readonly<Partial<Record<ErrorCode, string>>> = {
  TAG_RESOLVE_FAILED: 'a value that begins with "!" is a tag in YAML: write the text in quotes',
  BAD_DQ_ESCAPE: 'a "\\" inside of "..." begins an escape: write it twice, or the text in \'...\'',
  DUPLICATE_KEY: 'this key stands here twice; keep one',
  TAB_AS_INDENT: 'a tab cannot indent; use spaces',
  MULTILINE_IMPLICIT_KEY: 'no key ends here: write ": " between a key and its value',
  RESOURCE_EXHAUSTION: tooDeep,
  MULTIPLE_DOCS:
    'a second document begins here; a pipeline is one, so remove the "---" or put this into a file of its own',
}

/** A pipeline file as plain values that still knows where each of them stands. */
export class YamlDocument {
  readonly #document: Document.Parsed
  readonly #lines = new LineCounter()

  constructor(
    readonly file: string,
    readonly text: string,
  ) {
    this.#document = parseDocument(text, { lineCounter: this.#lines, prettyErrors: false, merge: true })
  }

  /** What YAML itself refuses: syntax, keys given twice, aliases without anchor or without end. */
  problems(): ConfigProblem[] {
    // A tag that nobody knows is a warning for YAML, and the value would be another one.
    const tags = this.#document.warnings.filter(({ code }) => code === 'TAG_RESOLVE_FAILED')
    const problems = [...this.#document.errors.slice(0, this.#meant()), ...tags].map(
      ({ code, message, pos }) =>
        this.#problem(pos[0], this.#unquoted(pos[0]) ?? plainWords[code] ?? firstLine(message)),
    )
    if (problems.length > 0) return problems
    const visitAlias = (_: unknown, alias: Alias, around: readonly unknown[]) => {
      const anchored = alias.resolve(this.#document)
      const at = offsetOf(alias) ?? 0
      if (anchored === undefined) problems.push(this.#problem(at, this.#unanchored(alias)))
      else if (around.includes(anchored))
        problems.push(
          this.#problem(at, `the alias *${alias.source} stands inside of what it names, which has no end so`),
        )
    }
    return this.#inDepth(() => {
      visit(this.#document, { Alias: visitAlias })
      return problems.length > 0 ? problems : this.#expansionProblems()
    })
  }

  /** What is nested deeper than any pipeline uses up the stack, here or in the library. */
  #inDepth(look: () => ConfigProblem[]): ConfigProblem[] {
    try {
      return look()
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      return [this.#problem(0, tooDeep)]
    }
  }

  /** Errors that are a person's: what follows a token out of place is mostly of its making. */
  #meant(): number {
    const broken = this.#document.errors.findIndex(({ code }) => code === 'UNEXPECTED_TOKEN')
    return broken === -1 ? this.#document.errors.length : broken + 1
  }

  /** `{ port: ${PORT} }` begins a second section inside the first for YAML. */
  #unquoted(offset: number): string | undefined {
    if (!/\$\{?$/.test(this.text.slice(0, offset + 1))) return undefined
    return 'inside { } and [ ] a ${...} must stand in quotes: "${...}"'
  }

  /** Where a password may stand, it is not told. */
  #unanchored(alias: Alias): string {
    const line =
      this.text
        .slice(0, offsetOf(alias) ?? 0)
        .split('\n')
        .at(-1) ?? ''
    const key = /(\w+)["']?\s*:\s*$/.exec(line)?.[1] ?? ''
    return isOfLogin(key)
      ? 'a value that begins with "*" is an alias in YAML, and has no anchor: write the text in quotes'
      : `no anchor &${alias.source} stands before this alias`
  }

  #expansionProblems(): ConfigProblem[] {
    try {
      this.values()
      return []
    } catch (error) {
      if (error instanceof RangeError) throw error
      return [this.#problem(0, firstLine(error instanceof Error ? error.message : String(error)))]
    }
  }

  #problem(offset: number, message: string): ConfigProblem {
    return { file: this.file, ...this.#place(offset), path: '', message }
  }

  /** Fresh plain values; empty keys (`cameras:` with nothing behind it) are left out, so that defaults hold. */
  values(): unknown {
    return withoutNull(this.#document.toJS({ maxAliasCount: 100 }) ?? {})
  }

  /** Whether the file has something at `path`. */
  has(path: SettingPath): boolean {
    let node: unknown = this.#document.contents
    for (const step of path) node = this.#child(node, step)?.value
    return node !== undefined
  }

  /** Where the value at `path` stands, or its closest ancestor that stands in the file. */
  placeOf(path: SettingPath): Place {
    let node: unknown = this.#document.contents
    let offset = offsetOf(node) ?? 0
    for (const step of path) {
      const found = this.#child(node, step)
      if (found === undefined) break
      offset = offsetOf(found.value) ?? offsetOf(found.key) ?? offset
      node = found.value
    }
    return this.#place(offset)
  }

  /** Where the last key of `path` stands: for keys that should not be there. */
  placeOfKey(path: SettingPath): Place {
    let node: unknown = this.#document.contents
    for (const step of path.slice(0, -1)) node = this.#child(node, step)?.value
    const offset = offsetOf(this.#child(node, path.at(-1) ?? '')?.key)
    return offset === undefined ? this.placeOf(path) : this.#place(offset)
  }

  #child(parent: unknown, step: string | number): { key?: unknown; value: unknown } | undefined {
    const node = isAlias(parent) ? parent.resolve(this.#document) : parent
    if (isSeq(node) && typeof step === 'number' && step < node.items.length)
      return { value: node.items[step] }
    if (!isMap(node)) return undefined
    return node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step))
  }

  #place(offset: number): Place {
    const { line, col } = this.#lines.linePos(offset)
    return { line: Math.max(1, line), column: Math.max(1, col) }
  }
}

function offsetOf(node: unknown): number | undefined {
  return (node as Node | null | undefined)?.range?.[0]
}

function withoutNull(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNull)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) => (item === null ? [] : [[key, withoutNull(item)]])),
  )
}

function firstLine(text: string): string {
  return text.split('\n')[0] ?? text
}
