import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { FieldReader } from '../../src/processes/frame-fields.js'
import { FrameError } from '../../src/processes/frames.js'
import { SupervisedProcess } from '../../src/processes/supervised-process.js'
import { InternalError } from '../../src/errors.js'
import { recordingLog } from '../support/silent-log.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

const dist = pathToFileURL(join(import.meta.dirname, '../../dist/processes')).href

type From = Readonly<{ type: 'online' | 'ready' | 'stopped' }> | Readonly<{ type: 'word'; text: string }>
type To = Readonly<{ type: 'setup' | 'go' | 'stop' }>

/** A real process which does `work` when it is told to go, and `atStop` before it ends. */
async function supervised(
  work: string,
  { atStop = '', startsAgainIn = (): number | undefined => undefined } = {},
) {
  const entry = join(tempDir(), 'main.mjs')
  writeFileSync(
    entry,
    `import { leaveParent, parentChannel } from '${dist}/parent-channel.js'
     import { FieldWriter, textBytes } from '${dist}/frame-fields.js'
     const channel = parentChannel({})
     const { socket } = channel
     const word = (text) => channel.send({ type: 'word', text })
     const bytes = (text) => {
       const fields = new FieldWriter(textBytes(text))
       fields.text(text)
       channel.sendBytes(fields)
     }
     process.on('message', ({ type }) => {
       if (type === 'setup') channel.send({ type: 'ready' })
       if (type === 'go') { ${work} }
       if (type === 'stop') { ${atStop}; void leaveParent(channel) }
     })
     channel.send({ type: 'online' })`,
  )
  const heard: string[] = []
  const { log, lines } = recordingLog()
  const process = new SupervisedProcess<From, To>(
    {
      title: 'talker',
      logFields: {},
      entry,
      setup: () => ({ type: 'setup' }),
      loadAtMostMs: 30_000,
      unavailable: (reason) => new InternalError(reason),
    },
    {
      ready: () => void heard.push('ready'),
      gone: (reason) => void heard.push(`gone: ${reason}`),
      startsAgainIn,
      message: (message) => void (message.type === 'word' && heard.push(message.text)),
      bytes: (body) => {
        const text = new FieldReader(body).text()
        if (text === 'nonsense') throw new FrameError('nonsense')
        heard.push(text)
      },
    },
    log,
  )
  onTestFinished(() => process.stop(1_000))
  await process.start()
  const problems = () => lines.map(({ msg }) => String(msg)).filter((text) => text.endsWith('killing it'))
  const back = () => until('the next process', () => process.health.restarts === 1 && process.ready)
  return { process, heard, problems, back }
}

/** Holds this process up until the other is dead: what it said is in the kernel then, and nowhere else. */
function whenDead(pid: number): void {
  const stateOf = () => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.[0]
  const endMs = performance.now() + 20_000
  while (stateOf() !== 'Z') if (performance.now() > endMs) throw new Error(`process ${pid} lives on`)
}

const number = (count: number) => Array.from({ length: count }, (_, index) => `${index}`)

describe('what a supervised process says', () => {
  it('is heard in order, messages and bytes', async () => {
    const { process, heard } = await supervised(
      `for (let i = 0; i < 2_000; i += 1) (i % 3 === 0 ? word : bytes)(String(i))`,
    )
    process.tell({ type: 'go' })
    await until('all', () => heard.length > 2_000)
    expect(heard).toEqual(['ready', ...number(2_000)])
  })

  it('R38: is heard to the last whole frame when it dies in the middle of one, before its end is told', async () => {
    const { process, heard, problems, back } = await supervised(
      `channel.together(() => { for (let i = 0; i < 500; i += 1) bytes(String(i)) })
       socket.write(Buffer.of(100, 0, 0, 0, 1, 7, 7), () => process.kill(process.pid, 'SIGKILL'))`,
    )
    process.tell({ type: 'go' })
    await new Promise(setImmediate)
    whenDead(process.health.pid ?? 0)
    await back()
    expect(heard).toEqual(['ready', ...number(500), 'gone: SIGKILL', 'ready'])
    expect(problems()).toEqual([])
  })

  it('is heard before its stop is over', async () => {
    const { process, heard } = await supervised('', {
      atStop: `for (let i = 0; i < 5_000; i += 1) bytes(String(i))`,
    })
    await process.stop(20_000)
    expect(heard).toEqual(['ready', ...number(5_000)])
  })
})

describe('a supervised process that does not keep to the channel', () => {
  it.each([
    [
      'tells of a frame larger than any',
      'socket.write(Buffer.of(1, 0, 0, 255, 1))',
      /a frame of 4278190081 bytes/,
    ],
    ['sends a frame of no kind', 'socket.write(Buffer.of(0, 0, 0, 0, 9))', /a frame of kind 9/],
    [
      'sends a message that is no JSON',
      'socket.write(Buffer.of(1, 0, 0, 0, 0, 123))',
      /a message that is none: {/,
    ],
    ['sends a message that says nothing', "socket.write(Buffer.from('\\x04\\0\\0\\0\\0null'))", /none: null/],
    ['sends bytes that are not as agreed', "bytes('nonsense')", /nonsense/],
    [
      'sends bytes that are cut off',
      'socket.write(Buffer.of(5, 0, 0, 0, 1, 9, 0, 0, 0, 65))',
      /a field of 9 bytes/,
    ],
  ])('R38: is ended and started again, as it %s', async (_, fault, problem) => {
    const { process, heard, problems, back } = await supervised(`word('before'); ${fault}; word('after')`)
    process.tell({ type: 'go' })
    await back()
    expect(heard).toEqual(['ready', 'before', 'gone: SIGKILL', 'ready'])
    expect(problems()).toEqual([expect.stringMatching(/^talker broke the channel: /)])
    expect(problems()[0]).toMatch(problem)
  })

  it.each([
    ['its channel', 'socket.end()', 'talker closed its channel, killing it'],
    [
      'it in the middle of a frame',
      'socket.end(Buffer.of(9, 0, 0, 0, 1))',
      'talker closed its channel in the middle of a frame, killing it',
    ],
  ])('R38: is ended, as it closes %s and lives on', async (_, fault, problem) => {
    const { process, heard, problems, back } = await supervised(`word('before'); ${fault}`)
    process.tell({ type: 'go' })
    await back()
    expect(heard).toEqual(['ready', 'before', 'gone: SIGKILL', 'ready'])
    expect(problems()).toEqual([problem])
  })
})

describe('when a supervised process that ended is started again', () => {
  it.each([
    ['at once', 0],
    ['when its owner says', 400],
  ])('is %s', async (_, forMs) => {
    const {
      process: talker,
      heard,
      back,
    } = await supervised(`process.kill(process.pid, 'SIGKILL')`, {
      startsAgainIn: () => forMs,
    })
    talker.tell({ type: 'go' })
    await until('its end', () => heard.includes('gone: SIGKILL'))
    const goneMs = performance.now()
    await back()
    expect(performance.now() - goneMs).toBeGreaterThan(forMs)
    expect(heard).toEqual(['ready', 'gone: SIGKILL', 'ready'])
  })
})

describe('R45: a supervised process that is started at once or never', () => {
  async function started(work: string) {
    const entry = join(tempDir(), 'main.mjs')
    writeFileSync(
      entry,
      `import { parentChannel } from '${dist}/parent-channel.js'
       const channel = parentChannel({})
       process.on('message', () => { ${work} })
       channel.send({ type: 'online' })`,
    )
    const { log, lines } = recordingLog()
    const process = new SupervisedProcess<From, To>(
      {
        title: 'trial',
        logFields: {},
        entry,
        setup: () => ({ type: 'setup' }),
        loadAtMostMs: 30_000,
        triesOnce: true,
        unavailable: (reason) => new InternalError(reason),
      },
      { ready: () => undefined, gone: () => undefined, message: () => undefined },
      log,
    )
    onTestFinished(() => process.stop(1_000))
    return { process, starting: process.start(), lines }
  }

  it.each([
    [
      'says that it cannot',
      `channel.send({ type: 'failed', error: { code: 'GANTRY_PROVIDER_FAILS', message: 'GPU 0 is full', hint: '' } })`,
      'GPU 0 is full',
    ],
    ['dies', `process.kill(process.pid, 'SIGKILL')`, 'SIGKILL'],
  ])('fails where it %s, without a word or another try', async (_, work, reason) => {
    const { process, starting, lines } = await started(work)
    await expect(starting).rejects.toThrow(reason)
    await until('it is gone', () => process.health.state === 'failed')
    await process.stop(0)
    expect(process.health.restarts).toBe(0)
    expect(lines).toEqual([])
  })
})
