import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { RemoteError } from '../../src/errors.js'
import type { BackendInstance, BatchResult, Execution } from '../../src/runtime/backend.js'
import { InstanceGroup } from '../../src/runtime/instance-group.js'
import { ShortRuns } from '../../src/runtime/instances/short-runs.js'
import { ManualClock } from '../support/manual-clock.js'
import { recordingLog } from '../support/silent-log.js'
import { until } from '../support/until.js'

type Fake = BackendInstance & {
  index: number
  exit: (error: Error) => void
  end: (inferMs: number) => void
  closed: boolean
}

function fakeInstance(index: number): Fake {
  let exit: Fake['exit'] = () => undefined
  const exited = new Promise<Error>((resolve) => (exit = resolve))
  const waiting: { resolve: (result: BatchResult) => void; reject: (error: Error) => void }[] = []
  const fake: Fake = {
    index,
    exited,
    closed: false,
    execute: () => new Promise((resolve, reject) => waiting.push({ resolve, reject })),
    exit: (error) => {
      for (const { reject } of waiting.splice(0)) reject(error)
      exit(error)
    },
    end: (inferMs) =>
      waiting.shift()?.resolve({
        results: [],
        times: { computeInputNs: 0, computeInferNs: inferMs * 1e6, computeOutputNs: 0 },
      }),
    close: () => {
      fake.closed = true
      return Promise.resolve()
    },
  }
  return fake
}

function setOf(
  count: number,
  failing: (start: number) => boolean = () => false,
  error = new Error('no memory'),
  givesUp = true,
  starting: (start: number) => Promise<unknown> = () => Promise.resolve(),
  follow = false,
) {
  const clock = new ManualClock()
  const { log, lines } = recordingLog()
  const started: Fake[] = []
  const hung: string[] = []
  const broken: string[] = []
  let idleCalls = 0
  let starts = 0
  const set = new InstanceGroup<readonly Execution[], BatchResult>({
    name: 'm',
    count: () => count,
    othersFollow: () => follow,
    start: async (index) => {
      const start = starts++
      await starting(start)
      if (failing(start)) throw error
      const fake = fakeInstance(index)
      started.push(fake)
      return fake
    },
    clock,
    log,
    onIdle: () => (idleCalls += 1),
    onHung: (instance) => hung.push(instance),
    runTimeoutMs: 1_000,
    shortRuns: new ShortRuns(({ times }) => times.computeInferNs / 1e6),
    ...(givesUp ? { onBroken: (reason: string) => broken.push(reason) } : {}),
  })
  onTestFinished(async () => void (await set.stop(5_000)))
  return { set, clock, started, hung, broken, lines, idleCalls: () => idleCalls }
}

describe('InstanceGroup', () => {
  it('fails the runs of an instance that ends, starts another, and goes on with the rest', async () => {
    const { set, started, lines, idleCalls } = setOf(2)
    await set.start()
    const [lost, kept] = [set.run([]), set.run([])]
    const told = expect(lost).rejects.toThrow('gone')
    started[0]!.exit(new Error('gone'))
    await told
    expect(set.ready).toBe(1)
    started[1]!.end(1)
    await kept
    await until('both instances', () => set.ready === 2)
    expect(started.map(({ index }) => index)).toEqual([0, 1, 0])
    expect(lines).toContainEqual(expect.objectContaining({ instance: 'm#0' }))
    expect(idleCalls()).toBeGreaterThan(0)
  })

  it('has one prepare for as long as that takes: nothing is put behind it, and it does not hang', async () => {
    const { set, clock, started, hung } = setOf(2)
    await set.start()
    const preparing = set.prepare(0, (instance) => instance.execute([]))
    expect([set.idle, set.ahead, set.isUp(0)]).toEqual([1, 0, true])
    clock.advance(60_000)
    expect(hung).toEqual([])
    const served = set.run([])
    expect([set.idle, set.ahead]).toEqual([0, 0])
    started[1]!.end(1)
    await served
    started[0]!.end(5)
    await preparing
    expect(set.idle).toBe(2)
  })

  it('takes one that prepares for minutes for one that hangs', async () => {
    const { set, clock, started, hung } = setOf(1)
    await set.start()
    const preparing = set.prepare(0, (instance) => instance.execute([]))
    clock.advance(119_000)
    expect(hung).toEqual([])
    clock.advance(1_000)
    expect(hung).toEqual(['m#0'])
    started[0]!.end(1)
    await preparing
  })

  it('tells why one does not prepare, and which is up', async () => {
    const { set, started } = setOf(1)
    await set.start()
    const preparing = expect(set.prepare(0, (instance) => instance.execute([]))).rejects.toThrow('gone')
    started[0]!.exit(new Error('gone'))
    await preparing
    expect(set.isUp(0)).toBe(false)
    await expect(set.prepare(0, (instance) => instance.execute([]))).rejects.toMatchObject({
      code: 'GANTRY_WORKER_EXITED',
    })
  })

  it('tries again when an instance cannot be started again', async () => {
    const { set, started } = setOf(1, (start) => start === 1)
    await set.start()
    started[0]!.exit(new Error('gone'))
    await until('another instance', () => started.length === 2 && set.ready === 1)
  })

  it('R46: works with the instances that a GPU has room for', async () => {
    const full = new RemoteError({
      code: 'GANTRY_PROVIDER_FAILS',
      message: 'GPU 0 is out of memory',
      hint: '',
    })
    const { set, lines } = setOf(3, (start) => start === 1, full)
    await set.start()
    expect([set.size, set.ready]).toEqual([3, 2])
    expect(lines.filter(({ instance }) => instance === 'm#1')).toEqual([
      expect.objectContaining({ msg: 'instance cannot be started now, the others work: it is tried again' }),
    ])
  })

  it('fails where it is the first that there is no room for, or another is wrong', async () => {
    const full = new RemoteError({
      code: 'GANTRY_PROVIDER_FAILS',
      message: 'GPU 0 is out of memory',
      hint: '',
    })
    await expect(setOf(3, (start) => start === 0, full).set.start()).rejects.toThrow('out of memory')
    await expect(setOf(3, (start) => start === 1, new Error('wrong')).set.start()).rejects.toThrow('wrong')
  })

  it('R23: does not give up a model whose threads a limit of the system keeps away', async () => {
    let left = 0
    const limit = Object.assign(new Error('Worker initialization failure: EAGAIN'), {
      code: 'ERR_WORKER_INIT_FAILED',
    })
    const { set, started, broken } = setOf(1, () => left-- > 0, limit)
    await set.start()
    left = 5
    started[0]?.exit(new Error('gone'))
    await until('another', () => started.length === 2, 30_000)
    expect(broken).toEqual([])
    await set.stop(5_000)
  }, 40_000)

  it('gives up after five ends within a minute, and not for ends that lie further apart', async () => {
    const { set, clock, started, broken } = setOf(1)
    await set.start()
    const end = (count: number) => started[count - 1]!.exit(new Error(`gone ${count}`))
    for (let count = 1; count <= 4; count++) {
      end(count)
      await until('another instance', () => started.length === count + 1 && set.ready === 1)
      set.run([]).catch(() => undefined)
      started[count]!.end(1)
    }
    clock.advance(61_000)
    for (let count = 5; count <= 8; count++) {
      end(count)
      await until('another instance', () => started.length === count + 1 && set.ready === 1)
      set.run([]).catch(() => undefined)
      started[count]!.end(1)
    }
    expect(broken).toEqual([])
    end(9)
    await until('it gives up', () => broken.length === 1)
    expect(broken).toEqual(['its instances ended 5 times within 60 s: gone 9'])
    expect(set.ready).toBe(0)
  })

  it('never gives up where nobody would load the model again, as for cameras', async () => {
    const { set, clock, started, broken } = setOf(1, undefined, undefined, false)
    await set.start()
    for (let count = 1; count <= 7; count++) {
      started[count - 1]!.exit(new Error(`gone ${count}`))
      await until('another instance', () => started.length === count + 1 && set.ready === 1)
      set.run([]).catch(() => undefined)
      started[count]!.end(1)
    }
    expect(clock.nowMs()).toBe(0)
    expect(broken).toEqual([])
  })

  it('waits at its end for an instance that is being started', async () => {
    let up: (instance: Fake) => void = () => undefined
    const group = new InstanceGroup<readonly Execution[], BatchResult>({
      name: 'm',
      count: () => 2,
      start: (index) =>
        index === 0 ? Promise.resolve(fakeInstance(0)) : new Promise((resolve) => (up = resolve)),
      clock: new ManualClock(),
      log: recordingLog().log,
      onIdle: () => undefined,
      onHung: () => undefined,
      runTimeoutMs: 1_000,
    })
    const starting = group.start()
    await until('the first', () => group.ready === 1)
    const second = fakeInstance(1)
    const stopping = group.stop(60_000)
    await new Promise((resolve) => setImmediate(resolve))
    up(second)
    await expect(stopping).resolves.toBe(true)
    expect(second.closed).toBe(true)
    await starting
  })

  it('refuses a run that no instance would take', async () => {
    const { set } = setOf(1)
    await set.start()
    void set.run([]).catch(() => undefined)
    await expect(set.run([])).rejects.toMatchObject({ code: 'GANTRY_WORKER_EXITED' })
  })

  it('ends what it started when one of the first does not start', async () => {
    const { set, started } = setOf(3, (start) => start === 2)
    await expect(set.start()).rejects.toThrow('no memory')
    expect(started.every(({ closed }) => closed)).toBe(true)
  })

  describe('whose others follow', () => {
    it('runs with the first one, and with each as it comes', async () => {
      const go: (() => void)[] = []
      const held = (start: number) =>
        start === 0 ? Promise.resolve() : new Promise<void>((resolve) => go.push(resolve))
      const { set, started, idleCalls } = setOf(3, undefined, undefined, false, held, true)
      await set.start()
      expect([set.size, set.ready, set.idle]).toEqual([3, 1, 1])
      const run = set.run([])
      started[0]!.end(1)
      await run
      await until('the others begun', () => go.length === 2)
      const before = idleCalls()
      go[1]!()
      await until('another', () => set.ready === 2)
      expect(idleCalls()).toBeGreaterThan(before)
      go[0]!()
      await until('all', () => set.ready === 3)
    })

    it('tries again for one that does not start, while the others run', async () => {
      const { set, lines } = setOf(2, (start) => start === 1, undefined, false, undefined, true)
      await set.start()
      expect(set.ready).toBe(1)
      await until('the other', () => set.ready === 2)
      expect(lines).toContainEqual(
        expect.objectContaining({ instance: 'm#1', msg: 'instance ended, starting another' }),
      )
    })

    it('starts none once it is stopped', async () => {
      const go: (() => void)[] = []
      const held = (start: number) =>
        start === 0 ? Promise.resolve() : new Promise<void>((resolve) => go.push(resolve))
      const { set, started } = setOf(4, undefined, undefined, false, held, true)
      await set.start()
      await until('two begun', () => go.length === 2)
      const stopped = set.stop(5_000)
      for (const each of go) each()
      expect(await stopped).toBe(true)
      expect(go).toHaveLength(2)
      expect(started.every(({ closed }) => closed)).toBe(true)
    })
  })

  it('tells when a run does not end', async () => {
    const { set, clock, started, hung } = setOf(1)
    await set.start()
    const slow = set.run([])
    clock.advance(900)
    started[0]!.end(900)
    await slow
    clock.advance(5_000)
    expect(hung).toEqual([])
    set.run([]).catch(() => undefined)
    clock.advance(1_500)
    expect(hung).toEqual(['m#0'])
  })

  it('hands out the next run ahead of time only while runs are short', async () => {
    const { set, started } = setOf(1)
    await set.start()
    const run = async (inferMs: number) => {
      const answer = set.run([])
      started[0]!.end(inferMs)
      await answer
    }
    await run(0.01)
    const first = set.run([])
    expect([set.idle, set.ahead]).toEqual([0, 1])
    started[0]!.end(100)
    await first
    void set.run([]).catch(() => undefined)
    expect([set.idle, set.ahead]).toEqual([0, 0])
  })

  it('keeps the loop awake only while a run that is over in an instant is under way', async () => {
    const { set, started } = setOf(1)
    await set.start()
    const run = async (inferMs: number) => {
      const turns = vi.spyOn(globalThis, 'setImmediate')
      const answer = set.run([])
      started[0]!.end(inferMs)
      await answer
      return turns.mock.calls.length > 0
    }
    onTestFinished(() => void vi.restoreAllMocks())
    await run(0.01)
    await expect(run(10)).resolves.toBe(true)
    vi.restoreAllMocks()
    await expect(run(10)).resolves.toBe(false)
  })
})
