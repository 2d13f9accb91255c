import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it, onTestFinished } from 'vitest'
import { entryPath } from '../../src/lifecycle/entry.js'

const logModule = entryPath(new URL('../../src/lifecycle/log.ts', import.meta.url).href, './log.js')

/** Runs a snippet with a log called `log` in a process of its own and gives back what it wrote to stderr. */
function written(snippet: string, format = 'json'): string {
  const script = `
    const { createLog } = await import(${JSON.stringify(logModule)})
    const log = createLog({ level: 'info', format: '${format}' }, 'test')
    ${snippet}
    log.flush()
  `
  return spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' }).stderr
}

describe('createLog', () => {
  it.each([
    ['in the sentence', `log.info('opening rtsp://admin:S3cret%40x@10.0.0.1/live')`],
    ['in a field', `log.info({ url: 'rtsp://admin:S3cret@x@10.0.0.1/live' }, 'opening')`],
    ['deep in a field', `log.info({ camera: { urls: ['rtsp://admin:S3cret@10.0.0.1/live'] } }, 'opening')`],
    ['in an error', `log.error({ err: new Error('rtsp://admin:S3cret@10.0.0.1: refused') }, 'failed')`],
    [
      'in the cause of an error',
      `log.error({ err: new Error('failed', { cause: new Error('rtsp://a:S3cret@h') }) }, 'x')`,
    ],
    ['in a child', `log.child({ url: 'rtsp://admin:S3cret@10.0.0.1/live' }).info('opening')`],
  ])('masks credentials %s', (_, snippet) => {
    const text = written(snippet)
    expect(text).not.toBe('')
    expect(text).not.toContain('S3cret')
  })

  it.each(['json', 'pretty'])('has written every line when its process exits: %s', (format) => {
    const text = written(
      `for (let line = 0; line < 500; line++) log.info('line ' + line); process.exit()`,
      format,
    )
    expect(text.match(/line \d+/g)).toEqual(Array.from({ length: 500 }, (_, line) => `line ${line}`))
  })

  it('writes one line whatever a name holds', () => {
    const lines = written(`log.info({ name: 'a\\nb\\u001b[31m' }, 'hello')`).trim().split('\n')
    expect(lines).toHaveLength(1)
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 'info', msg: 'hello', name: 'a\nb\u001b[31m' })
  })
})

describe('R89: a log whose reader went', () => {
  /** Starts a process that logs `lines` lines once it is told to and then ends, and tells how it ended. */
  function logging(format: 'json' | 'pretty', lines: number) {
    const script = `
      const { createLog } = await import(${JSON.stringify(logModule)})
      const log = createLog({ level: 'info', format: '${format}' }, 'test')
      process.stdin.once('data', () => {
        for (let line = 0; line < ${lines}; line++) log.info('x'.repeat(100))
        process.exit(7)
      })
      process.stdout.write('ready')
    `
    const child = spawn(process.execPath, ['--input-type=module', '-e', script])
    onTestFinished(() => void child.kill('SIGKILL'))
    return child
  }

  it.each([
    ['json', 'is closed', 100],
    ['pretty', 'is closed', 100],
    ['json', 'reads nothing', 5_000],
    ['pretty', 'reads nothing', 5_000],
  ] as const)('lets its process end: %s, and a reader that %s', async (format, what, lines) => {
    const child = logging(format, lines)
    await once(child.stdout, 'data')
    child.stderr.pause()
    if (what === 'is closed') child.stderr.destroy()
    child.stdin.write('now')
    expect(await once(child, 'exit')).toEqual([7, null])
  })
})
