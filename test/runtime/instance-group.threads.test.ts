import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { InferenceFailedError, WorkerExitedError } from '../../src/runtime/errors.js'
import { Instance } from '../../src/runtime/instance.js'
import { InstanceGroup } from '../../src/runtime/instance-group.js'
import { timers } from '../../src/runtime/scheduler-clock.js'
import { recordingLog } from '../support/silent-log.js'
import { until } from '../support/until.js'

type Load = { failLoad?: boolean; first?: number }
type Ready = { loaded: number; first: number | null }
type Job = { do?: 'exit' | 'throw' | 'crash' | 'hang'; buffer?: ArrayBuffer }
type Result = { runs: number; bytes: number; buffer?: ArrayBuffer }

const entry = fileURLToPath(new URL('../support/echo-worker.mjs', import.meta.url))

async function startEcho(name: string, load: Load) {
  const thread = new Instance<Load, Ready, Job, Result>(name, entry)
  const instance = {
    exited: thread.exited,
    execute: (job: Job) => thread.run(job, job.buffer === undefined ? [] : [job.buffer]),
    close: (forMs = 1_000) => thread.stop(forMs),
  }
  try {
    return { instance, ready: await thread.load(load) }
  } catch (error) {
    await thread.stop(1_000)
    throw error
  }
}

function poolOf(count: number, load: (first: Ready | undefined) => Load = () => ({}), aheadUpToMs = 0) {
  const exits: unknown[] = []
  let idleCalls = 0
  const { log, lines } = recordingLog()
  let first: Ready | undefined
  const pool = new InstanceGroup<Job, Result>({
    name: 'echo',
    count: () => count,
    start: async (index) => {
      const { instance, ready } = await startEcho(`echo#${index}`, load(first))
      first ??= ready
      return instance
    },
    clock: timers,
    log,
    onEnd: (error) => exits.push(error),
    onIdle: () => (idleCalls += 1),
    aheadUpToMs,
    runTimeoutMs: 60_000,
    onHung: () => undefined,
  })
  onTestFinished(async () => void (await pool.stop(1_000)))
  return { pool, exits, lines, idleCalls: () => idleCalls }
}

describe('InstanceGroup of threads', () => {
  it('starts the first instance, then the others with what became of it', async () => {
    const seen: (Ready | undefined)[] = []
    const { pool } = poolOf(3, (first) => {
      seen.push(first)
      return { first: first?.loaded ?? 0 }
    })
    await pool.start()
    expect(pool.idle).toBe(3)
    expect(seen[0]).toBeUndefined()
    expect(seen.slice(1)).toEqual([
      { loaded: 1, first: 0 },
      { loaded: 1, first: 0 },
    ])
  })

  it('moves buffers to the worker and back without a copy here', async () => {
    const { pool } = poolOf(1)
    await pool.start()
    const buffer = new ArrayBuffer(1024)
    const result = await pool.run({ buffer })
    expect(buffer.byteLength).toBe(0)
    expect(result.buffer?.byteLength).toBe(1024)
  })

  it('runs one job at a time in each instance and says when one is free again', async () => {
    const { pool, idleCalls } = poolOf(2)
    await pool.start()
    const first = pool.run({})
    const second = pool.run({})
    expect(pool.idle).toBe(0)
    await expect(pool.run({})).rejects.toBeInstanceOf(WorkerExitedError)
    await Promise.all([first, second])
    await until('idle again', () => idleCalls() === 2)
    expect(pool.idle).toBe(2)
  })

  it('takes one job more behind each run once runs are known to be short, and ends them in order', async () => {
    const { pool } = poolOf(1, undefined, 60_000)
    await pool.start()
    expect(pool.ahead).toBe(0)
    await pool.run({})
    expect([pool.idle, pool.ahead]).toEqual([1, 0])
    const first = pool.run({})
    expect([pool.idle, pool.ahead]).toEqual([0, 1])
    const second = pool.run({})
    expect([pool.idle, pool.ahead]).toEqual([0, 0])
    await expect(pool.run({})).rejects.toBeInstanceOf(WorkerExitedError)
    await expect(Promise.all([first, second])).resolves.toMatchObject([{ runs: 2 }, { runs: 3 }])
    expect([pool.idle, pool.ahead]).toEqual([1, 0])
  })

  it('takes none behind runs that are long', async () => {
    const { pool } = poolOf(1, undefined, 0)
    await pool.start()
    await pool.run({})
    const run = pool.run({})
    expect([pool.idle, pool.ahead]).toEqual([0, 0])
    await run
  })

  it('settles a job that waits behind a run whose worker ends', async () => {
    const { pool } = poolOf(1, undefined, 60_000)
    await pool.start()
    await pool.run({})
    const both = [pool.run({ do: 'exit' }), pool.run({})]
    for (const settled of await Promise.allSettled(both))
      expect(settled).toMatchObject({ status: 'rejected', reason: { code: 'GANTRY_WORKER_EXITED' } })
    await until('a new instance', () => pool.idle === 1)
  })

  it('rejects a run that fails and keeps the instance', async () => {
    const { pool, exits } = poolOf(1)
    await pool.start()
    await expect(pool.run({ do: 'throw' })).rejects.toBeInstanceOf(InferenceFailedError)
    await expect(pool.run({})).resolves.toMatchObject({ runs: 2 })
    expect(exits).toEqual([])
  })

  it.each(['exit', 'crash'] as const)(
    'settles the run of a worker that ends by %s and starts another',
    async (how) => {
      const { pool, exits, idleCalls, lines } = poolOf(1)
      await pool.start()
      await expect(pool.run({ do: how })).rejects.toMatchObject({ code: 'GANTRY_WORKER_EXITED' })
      expect(pool.idle).toBe(0)
      await until('a new instance', () => pool.idle === 1)
      expect(idleCalls()).toBeGreaterThan(0)
      expect(exits).toEqual([expect.any(WorkerExitedError)])
      expect(lines).toContainEqual(expect.objectContaining({ msg: 'instance ended, starting another' }))
      await expect(pool.run({})).resolves.toMatchObject({ runs: 1 })
    },
  )

  it('tells the error that ended a worker', async () => {
    const { pool } = poolOf(1)
    await pool.start()
    const error = await pool.run({ do: 'crash' }).catch((caught: unknown) => caught)
    expect(error).toMatchObject({ cause: { message: 'worker crashed' } })
  })

  it('ends everything when the first load fails', async () => {
    const { pool, exits } = poolOf(2, () => ({ failLoad: true }))
    await expect(pool.start()).rejects.toThrow('load was told to fail')
    expect(pool.idle).toBe(0)
    expect(exits).toEqual([])
  })

  it('finishes a run that has begun before it stops', async () => {
    const { pool } = poolOf(1)
    await pool.start()
    const run = pool.run({})
    await expect(pool.stop(5_000)).resolves.toBe(true)
    await expect(run).resolves.toMatchObject({ runs: 1 })
  })

  it('gives up a run that hangs once the drain time is over', async () => {
    const { pool } = poolOf(1)
    await pool.start()
    const run = pool.run({ do: 'hang' })
    const settled = run.catch((error: unknown) => error)
    await expect(pool.stop(50)).resolves.toBe(false)
    await expect(settled).resolves.toBeInstanceOf(WorkerExitedError)
  })
})
