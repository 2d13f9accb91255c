import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { tracingSchema } from '../../src/config/tracing.js'
import { TracingThread } from '../../src/tracing/tracing-thread.js'
import { recordingLog } from '../support/silent-log.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

const config = { ...tracingSchema.parse({ sampling: 1 }), endpoint: 'http://127.0.0.1:1' }
const start = { config, who: { process: 'control', pipeline: 'plant', version: '1.2.3' } } as const

/** A thread that does what is written here. */
function entryOf(code: string): string {
  const file = join(tempDir(), 'thread.mjs')
  writeFileSync(file, `import { parentPort as port } from 'node:worker_threads'\n${code}`)
  return file
}

describe('the thread that sends traces', () => {
  it('R188: ends, and nothing is traced from then on; who would trace goes on', async () => {
    const { log, lines } = recordingLog()
    const dies = `port.on('message', () => { throw new Error('out of luck') }); port.postMessage({ type: 'started' })`
    const tracing = await TracingThread.start(start, log, entryOf(dies))
    expect(tracing.picks()).toBe(true)
    const open = tracing.begin({ name: 'late', kind: 'internal', startMs: 1 })
    tracing.begin({ name: 'first', kind: 'internal', startMs: 1 }).end({ endMs: 2 })
    await tracing.flush(60_000)
    await until('the end', () => !tracing.picks())
    open.end({ endMs: 2 })
    await tracing.flush(60_000)
    await tracing.stop(60_000)
    const told = lines.filter(({ level }) => Number(level) >= 50)
    expect(told).toMatchObject([{ msg: 'nothing is traced until the service starts again' }])
    expect(JSON.stringify(told)).toContain('out of luck')
  })

  it.each([
    ['fails', `throw new Error('out of luck')`, /ended/],
    [
      'refuses',
      `port.postMessage({ type: 'failed', error: { code: 'GANTRY_INTERNAL', message: 'no such file', hint: '' } })`,
      /no such file/,
    ],
  ])('says why it cannot start where it %s, once', async (_, code, reason) => {
    const { log, lines } = recordingLog()
    await expect(TracingThread.start(start, log, entryOf(code))).rejects.toThrow(reason)
    expect(lines).toEqual([])
  })

  it('is told of what ends while it has not taken what came before in one message', async () => {
    const asks = `let spans = 0, messages = 0
      port.postMessage({ type: 'started' })
      port.on('message', (message) => {
        if (message.type !== 'spans') return port.postMessage({ type: 'log', level: 'info', fields: { spans, messages }, text: 'seen' }) , port.postMessage({ type: 'flushed' })
        spans += message.spans.length
        messages += 1
      })`
    const { log, lines } = recordingLog()
    const tracing = await TracingThread.start(start, log, entryOf(asks))
    onTestFinished(() => tracing.stop(0))
    const one = () => tracing.begin({ name: 'x', kind: 'internal', startMs: 1 }).end({ endMs: 2 })
    one()
    await until('the first message', async () => {
      await tracing.flush(60_000)
      return lines.at(-1)?.['spans'] === 1
    })
    for (let index = 0; index < 3_000; index += 1) one()
    await tracing.flush(60_000)
    expect(lines.filter(({ msg }) => msg === 'seen').at(-1)).toMatchObject({ spans: 2_049, messages: 2 })
  })
})
