import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const lifecycle = join(import.meta.dirname, '../../dist/lifecycle')

type Line = Readonly<{ level: string; msg: string; warning: Readonly<{ name: string; code?: string }> }>

/** What a process wrote to stderr that catches warnings, runs a snippet, and then has a log. */
function written(snippet: string, env: NodeJS.ProcessEnv = {}): string {
  const script = `
    await import(${JSON.stringify(join(lifecycle, 'catch-warnings.js'))})
    const { createLog } = await import(${JSON.stringify(join(lifecycle, 'log.js'))})
    const { nodeWarnings } = await import(${JSON.stringify(join(lifecycle, 'node-warnings.js'))})
    const { Worker } = await import('node:worker_threads')
    const { EventEmitter, once } = await import('node:events')
    const log = createLog({ level: 'info', format: 'json' }, 'test')
    const turn = () => new Promise((resolve) => setImmediate(resolve))
    ${snippet}
    await turn()
    nodeWarnings.tell(log)
    log.flush()
  `
  const options = { encoding: 'utf8', env: { ...process.env, ...env } } as const
  return spawnSync(process.execPath, ['--input-type=module', '-e', script], options).stderr
}

const lines = (text: string) =>
  text
    .trim()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line)

const listen = `const emitter = new EventEmitter()
  for (let i = 0; i < 12; i += 1) emitter.on('x', () => undefined)`

describe('catch-warnings', () => {
  it.each([
    ['TimeoutOverflowWarning', `clearTimeout(setTimeout(() => undefined, 2 ** 31))`],
    ['DeprecationWarning', `new Buffer(1)`],
    ['MaxListenersExceededWarning', listen],
    ['ExperimentalWarning', `process.emitWarning('x is experimental', 'ExperimentalWarning')`],
    ['Warning', `process.emitWarning('something')`],
  ])('R30: makes a %s one line of the log', (name, snippet) => {
    expect(lines(written(`{ ${snippet} } { ${snippet} }`))).toMatchObject([
      { level: 'warn', warning: { name } },
    ])
  })

  it('tells what comes before the log and after it', () => {
    const text = written(
      `process.emitWarning('a'); await turn(); nodeWarnings.tell(log); process.emitWarning('b')`,
    )
    expect(lines(text).map(({ msg }) => msg)).toEqual(['a', 'b'])
  })

  it('tells those of a thread', () => {
    const thread = `
      import(${JSON.stringify(join(lifecycle, 'catch-warnings.js'))})
        .then(() => process.emitWarning('from a thread', { code: 'X1' }))`
    const text = written(
      `await once(new Worker(${JSON.stringify(thread)}, { eval: true }), 'exit'); await turn()`,
    )
    expect(lines(text)).toMatchObject([{ level: 'warn', msg: 'from a thread', warning: { code: 'X1' } }])
  })

  it('masks credentials and tells no more than 100 kinds', () => {
    const text = written(`for (let i = 0; i < 300; i += 1)
      process.emitWarning('rtsp://admin:S3cret@h/', { code: 'X' + i })`)
    expect(lines(text)).toHaveLength(100)
    expect(text).not.toContain('S3cret')
  })

  it('is still where Node was told to be', () => {
    expect(written(`process.emitWarning('a')`, { NODE_NO_WARNINGS: '1' })).toBe('')
  })
})
