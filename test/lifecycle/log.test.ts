import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { entryPath } from '../../src/lifecycle/entry.js'

const logModule = entryPath(new URL('../../src/lifecycle/log.ts', import.meta.url).href, './log.js')

/** Runs a snippet with a log called `log` in a process of its own and gives back what it wrote to stderr. */
function written(snippet: string): string {
  const script = `
    const { createLog } = await import(${JSON.stringify(logModule)})
    const log = createLog({ level: 'info', format: 'json' }, 'test')
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

  it('writes one line whatever a name holds', () => {
    const lines = written(`log.info({ name: 'a\\nb\\u001b[31m' }, 'hello')`).trim().split('\n')
    expect(lines).toHaveLength(1)
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 'info', msg: 'hello', name: 'a\nb\u001b[31m' })
  })
})
