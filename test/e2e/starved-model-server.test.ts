import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { expect, it, onTestFinished, vi } from 'vitest'
import { mainThreadUse } from '../../src/processes/thread-use.js'
import { tinyRepository } from '../bench/tiny-model.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'

/** The watchdog looks for ten seconds before it does anything. */
vi.setConfig({ testTimeout: 180_000 })

const run = promisify(execFile)

/** A service whose model server runs on one processor alone, and only where nobody else wants it, as at nice 10 beside cameras. */
async function served() {
  const repository = tinyRepository()
  onTestFinished(() => rmSync(repository.dir, { recursive: true, force: true }))
  const service = await TestService.start({
    pipeline: {
      engines: 0,
      models: { repository: repository.dir, control: 'explicit', load: ['tiny'] },
      modelServer: { enabled: true },
    },
  })
  onTestFinished(() => service[Symbol.asyncDispose]())
  const isReady = async () => (await service.fetch('/v2/models/tiny/ready')).ok
  await until('the model', isReady, 60_000)
  const health = async () => (await service.readiness()).modelServer
  const pid = (await health())?.pid ?? 0
  return { service, health, isReady, pid }
}

/** Keeps a processor busy with as many loops. @returns what ends them. */
function busyLoops(processor: string, count: number): () => Promise<void> {
  const loops = Array.from({ length: count }, () => {
    const child = spawn('taskset', ['-c', processor, 'sh', '-c', 'while :; do :; done'], {
      stdio: 'ignore',
      // Where Linux weighs sessions against each other, each has the weight of one.
      detached: true,
    })
    return { child, over: once(child, 'exit') }
  })
  let ended: Promise<void> | undefined
  const end = () =>
    (ended ??= Promise.all(
      loops.map(async ({ child, over }) => {
        child.kill('SIGKILL')
        await over
      }),
    ).then(() => undefined))
  onTestFinished(end)
  return end
}

it('R91: a model server that gets no processor is left alone', async () => {
  const { service, health, isReady, pid } = await served()
  const { stdout } = await run('taskset', ['-pc', String(pid)])
  const [processor = '0'] = /(\d+)\s*$/.exec(stdout) ?? []
  await run('chrt', ['--all-tasks', '--idle', '--pid', '0', String(pid)])
  await run('taskset', ['-apc', processor.trim(), String(pid)])
  // The kernel has no such file where it does not weigh sessions.
  if (existsSync(`/proc/${pid}/autogroup`)) writeFileSync(`/proc/${pid}/autogroup`, '19')
  const end = busyLoops(processor.trim(), 100)
  const before = mainThreadUse(pid)?.cpuMs ?? 0
  const began = performance.now()
  await until('the watchdog has looked for long', () => performance.now() - began > 30_000, 60_000)
  // Far from the time that a beat a second takes.
  expect((mainThreadUse(pid)?.cpuMs ?? 0) - before).toBeLessThan(1_000)
  await end()
  await until('that it answers', isReady, 60_000)
  expect(await health()).toMatchObject({ pid, restarts: 0 })
  expect(service.stderr).not.toContain('gave no sign of life')
})

it('R91: a model server that hangs is started again', async () => {
  const { service, health, isReady, pid } = await served()
  process.kill(pid, 'SIGSTOP')
  const again = await until(
    'another one',
    async () => {
      const now = await health()
      return now?.state === 'ready' && now.pid !== pid ? now : undefined
    },
    60_000,
  )
  expect(again.restarts).toBe(1)
  expect(service.stderr).toContain('gave no sign of life')
  await until('that it answers', isReady, 60_000)
})
