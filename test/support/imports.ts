import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import ts from 'typescript'

const src = join(import.meta.dirname, '../../src')
const test = join(import.meta.dirname, '..')

/** Every source file, relative to `src/`. */
export function sourceFiles(): string[] {
  return readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((name) => /\.tsx?$/.test(name))
}

/** Every file of tests, relative to `test/`. */
export function testFiles(): string[] {
  return readdirSync(test, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.test.ts'))
}

/** `runtime/backend.ts` lies in the room `runtime`, `errors.ts` is the room `errors`. */
export function roomOf(file: string): string {
  return (file.split(sep)[0] ?? file).replace(/\.ts$/, '')
}

/** Every room there is. */
export function rooms(): string[] {
  return [...new Set(sourceFiles().map(roomOf))].sort()
}

/** What a file imports, types and dynamic imports included: packages by name, own files relative to `src/`. */
export function importsOf(file: string): string[] {
  const path = join(src, file)
  return ts
    .preProcessFile(readFileSync(path, 'utf8'))
    .importedFiles.map(({ fileName }) =>
      fileName.startsWith('.')
        ? relative(src, resolve(dirname(path), fileName)).replace(/\.js$/, '.ts')
        : fileName,
    )
}

/** Packages that are loaded with a file, before anything of it runs: those of types and of dynamic imports are not. */
export function packagesLoadedWith(file: string): string[] {
  const own = new Set(sourceFiles())
  const seen = new Set<string>()
  const visit = (name: string): void => {
    if (seen.has(name)) return
    seen.add(name)
    if (own.has(name)) loadedBy(name).forEach(visit)
  }
  visit(file)
  return [...seen].filter((name) => !own.has(name) && !name.startsWith('node:')).sort()
}

function loadedBy(file: string): string[] {
  const source = ts.createSourceFile(file, textOf(file), ts.ScriptTarget.Latest)
  const loaded = source.statements.flatMap((statement) => {
    if (ts.isExportDeclaration(statement)) return statement.isTypeOnly ? [] : [statement.moduleSpecifier]
    // `import { type A }` loads its file, as `verbatimModuleSyntax` has it.
    if (!ts.isImportDeclaration(statement) || statement.importClause?.isTypeOnly === true) return []
    return [statement.moduleSpecifier]
  })
  return loaded.flatMap((name) => {
    if (name === undefined || !ts.isStringLiteral(name)) return []
    return name.text.startsWith('.')
      ? [relative(src, resolve(src, dirname(file), name.text)).replace(/\.js$/, '.ts')]
      : [name.text]
  })
}

/** The other rooms that files of this room import. */
export function roomsImportedBy(room: string): string[] {
  const files = new Set(sourceFiles())
  const imported = [...files]
    .filter((file) => roomOf(file) === room)
    .flatMap(importsOf)
    .filter((file) => files.has(file))
    .map(roomOf)
  return [...new Set(imported)].filter((other) => other !== room).sort()
}

/** Imports of own files that lead nowhere or out of `src/`. */
export function strayImports(): string[] {
  const files = new Set(sourceFiles())
  return [...files].flatMap((file) =>
    importsOf(file)
      .filter((target) => /\.(ts|json)$/.test(target) && !files.has(target))
      .map((target) => `${file} -> ${target}`),
  )
}

/** A chain of files that import each other in a circle; empty when there is none. */
export function importCycle(): string[] {
  const done = new Set<string>()
  const files = new Set(sourceFiles())
  const visit = (file: string, path: readonly string[]): string[] => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file]
    if (done.has(file)) return []
    for (const next of importsOf(file).filter((target) => files.has(target))) {
      const cycle = visit(next, [...path, file])
      if (cycle.length > 0) return cycle
    }
    done.add(file)
    return []
  }
  for (const file of files) {
    const cycle = visit(file, [])
    if (cycle.length > 0) return cycle
  }
  return []
}

/** Switches over messages with a default that lets pass what it does not know: `file:line`. */
export function openSwitches(): string[] {
  return sourceFiles().flatMap((file) => {
    const source = parsed(file)
    return nodesOf(source)
      .filter(ts.isSwitchStatement)
      .filter(({ expression }) =>
        /^(message|question|answer|job|event|effect)\.(type|kind)$/.test(expression.getText(source)),
      )
      .filter(({ caseBlock }) =>
        caseBlock.clauses.some(
          (clause) => ts.isDefaultClause(clause) && !clause.getText(source).includes('satisfies never'),
        ),
      )
      .map(({ pos }) => `${file}:${source.getLineAndCharacterOfPosition(pos).line + 2}`)
  })
}

/** Names that more than one file of `src/` declares and exports: `name: file, file`. */
export function namesExportedTwice(): string[] {
  const filesOf = new Map<string, string[]>()
  for (const file of sourceFiles())
    for (const name of new Set(exportedBy(parsed(file))))
      filesOf.set(name, [...(filesOf.get(name) ?? []), file])
  return [...filesOf]
    .filter(([, files]) => files.length > 1)
    .map(([name, files]) => `${name}: ${files.join(', ')}`)
}

function exportedBy(source: ts.SourceFile): string[] {
  return source.statements
    .filter((statement) => ts.canHaveModifiers(statement))
    .filter((it) => ts.getModifiers(it)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword))
    .flatMap((it): readonly ts.NamedDeclaration[] =>
      ts.isVariableStatement(it) ? it.declarationList.declarations : [it as ts.NamedDeclaration],
    )
    .flatMap(({ name }) => (name === undefined ? [] : [name.getText(source)]))
}

export function textOf(file: string): string {
  return readFileSync(join(src, file), 'utf8')
}

function parsed(file: string): ts.SourceFile {
  return ts.createSourceFile(file, textOf(file), ts.ScriptTarget.Latest)
}

function nodesOf(node: ts.Node): ts.Node[] {
  const below: ts.Node[] = []
  ts.forEachChild(node, (child) => void below.push(child, ...nodesOf(child)))
  return below
}
