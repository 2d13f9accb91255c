// Follows the pages of docs/extending word for word, each in a copy of the tree: writes what they say, runs what they say, and looks
// whether formatter and linter agree. The first test of a page must fail before its code is there.
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { changed, extendingPages, stepsOf, type Step } from '../support/extending.js'

const root = join(import.meta.dirname, '../..')
const say = (line: string) => process.stdout.write(`${line}\n`)

function copyOfTree(): string {
  const copy = mkdtempSync(join(tmpdir(), 'gantry-extending-'))
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'], {
    cwd: root,
  })
  const files = listed.toString().split('\0')
  for (const file of new Set([...files, 'dist']))
    if (file !== '' && existsSync(join(root, file)))
      cpSync(join(root, file), join(copy, file), { recursive: true, preserveTimestamps: true })
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  return copy
}

function follow(page: string): boolean {
  const copy = copyOfTree()
  const run = (command: string) => {
    say(`${page}: ${command}`)
    const { status } = spawnSync('bash', ['-c', command], { cwd: copy, stdio: ['ignore', 'ignore', 2] })
    return status === 0
  }
  const write = (step: Exclude<Step, { kind: 'run' }>) => {
    const path = join(copy, step.path)
    const text = changed(copy, step)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
  }
  try {
    const steps = stepsOf(page)
    const [test] = steps
    if (test?.kind !== 'create') return false
    const paths = steps.flatMap((step) => (step.kind === 'run' ? [] : [step.path]))
    const files = [...new Set(paths)].join(' ')
    write(test)
    if (run(`npx vitest run ${test.path} 2>/dev/null`)) return false
    for (const step of steps.slice(1)) {
      if (step.kind !== 'run') write(step)
      else if (!step.commands.every(run)) return false
    }
    return run(`npx prettier --check ${files}`) && run(`npx eslint --max-warnings 0 ${files}`)
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

const [only] = process.argv.slice(2)
const pages = only === undefined ? extendingPages : [only]
const failed = pages.filter((page) => {
  const works = follow(page)
  say(`${page}: ${works ? 'works as it stands' : 'FAILED'}`)
  return !works
})
process.exitCode = failed.length === 0 ? 0 : 1
