import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { SilenceWatch, type SilenceLimits } from '../../src/processes/silence-watch.js'
import { mainThreadUse } from '../../src/processes/thread-use.js'

const limits: SilenceLimits = { hungAfterMs: 300, busyCpuMs: 60_000, busyAtMostMs: 60_000, lookEveryMs: 100 }

/** A process that does as it is told, and a watch over it. */
async function watched(work: string, more: Partial<SilenceLimits> = {}) {
  const child = fork(join(import.meta.dirname, '../support/holding.mjs'), [work])
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  await once(child, 'message')
  const { watch, hung } = watching(child, more)
  return { child, watch, hung }
}

function watching(child: ChildProcess, more: Partial<SilenceLimits>) {
  let tell: (problem: string) => void = () => undefined
  const hung = new Promise<string>((resolve) => (tell = resolve))
  const watch = new SilenceWatch(child.pid ?? 0, { ...limits, ...more }, tell)
  onTestFinished(() => watch.stop())
  child.on('message', (message) => {
    if (message === 'beat') watch.beat()
  })
  watch.beat()
  return { watch, hung }
}

it('R29: takes a loop that computes for long and then goes on for busy', async () => {
  const { child, hung } = await watched('compute')
  const over = once(child, 'message').then(() => 'it went on')
  child.send('1500')
  expect(await Promise.race([hung, over])).toBe('it went on')
})

it('R29: takes a loop that computes for ever for hung, by its processor time', async () => {
  const { child, hung } = await watched('compute', { busyCpuMs: 700 })
  child.send('60000')
  expect(await hung).toMatch(/^gave no sign of life for \d+ ms of processor time$/)
})

it.each([
  ['waits for what never comes', 'wait'],
  ['waits while other threads of its process compute', 'wait-beside-work'],
])('takes a loop that %s for hung', async (_, work) => {
  const { child, hung } = await watched(work)
  child.send('60000')
  expect(await hung).toBe('gave no sign of life for 300 ms')
})

it('takes a process that is stopped for hung', async () => {
  const { child, hung } = await watched('compute')
  child.kill('SIGSTOP')
  expect(await hung).toBe('gave no sign of life for 300 ms')
})

it('asks for no more than silence where no busy time is granted', async () => {
  const { child, hung } = await watched('compute', { busyCpuMs: 0 })
  child.send('60000')
  expect(await hung).toBe('gave no sign of life for 300 ms')
})

it('knows nothing of a process that is not there', () => {
  expect(mainThreadUse(2 ** 22)).toBeUndefined()
})
