import { describe, expect, it } from 'vitest'
import { MemoryAccounts } from '../../../src/runtime/memory/memory-accounts.js'
import { ManualClock } from '../../support/manual-clock.js'

const MiB = 1024 ** 2
const mainThread = 1

function rig({ limitMiB = 1000, counts = true, ownThreads = [mainThread] } = {}) {
  const clock = new ManualClock()
  const faults = new Map<number | 'process', number>()
  const over: [string, string][] = []
  const active: string[][] = []
  let residentBytes = 0
  const accounts = new MemoryAccounts({
    limitBytes: limitMiB * MiB,
    use: {
      residentBytes: () => residentBytes,
      pageFaults: (thread) => (counts ? (faults.get(thread) ?? 0) : undefined),
    },
    ownThreads: () => ownThreads,
    clock,
    onActive: (models) => active.push([...models.keys()]),
    onOver: (model, reason) => over.push([model, reason]),
  })
  /** A thread takes memory, or churns through it, and 50 ms pass. */
  const passes = (grownMiB: number, touched: Readonly<Record<number, number>> = {}) => {
    residentBytes += grownMiB * MiB
    for (const [thread, pages] of Object.entries(touched)) {
      faults.set(Number(thread), (faults.get(Number(thread)) ?? 0) + pages)
      faults.set('process', (faults.get('process') ?? 0) + pages)
    }
    clock.advance(50)
  }
  const model = (name: string) => {
    const account = accounts.open(name)
    account.loaded()
    return account
  }
  return { accounts, model, passes, over, active, clock }
}

/** Work that ends when it is told to. */
function work() {
  let end = (): void => undefined
  const done = new Promise<void>((resolve) => (end = resolve))
  return { run: () => done, end }
}

describe('S11: what a model takes of memory', () => {
  it('is what its threads were the first to touch', async () => {
    const { model, passes, over } = rig()
    const [a, b] = [model('a'), model('b')]
    const [runA, runB] = [work(), work()]
    const ended = Promise.all([a.run(11, runA.run), b.run(12, runB.run)])
    passes(400, { 11: 300, 12: 100, [mainThread]: 0 })
    expect([a.takenBytes / MiB, b.takenBytes / MiB]).toEqual([300, 100])
    // Requests that come in are nobody's.
    passes(400, { [mainThread]: 300, 11: 100 })
    expect([a.takenBytes / MiB, b.takenBytes / MiB]).toEqual([400, 100])
    runA.end()
    runB.end()
    await ended
    passes(-400)
    // A third of the 800 that are in the accounts, and in that of the requests.
    expect(a.takenBytes / MiB).toBeCloseTo(200)
    expect(over).toEqual([])
  })

  it('is not what threads took that read requests, though they began meanwhile', () => {
    const ownThreads = [mainThread]
    const { model, passes, over } = rig({ ownThreads })
    const meek = model('meek')
    void meek.run(11, work().run)
    ownThreads.push(21)
    for (let round = 0; round < 4; round++) passes(500, { 11: 1, 21: 499 })
    expect(meek.takenBytes / MiB).toBeCloseTo(4)
    expect(over).toEqual([])
  })

  it('is nothing where it churns through memory that it gives back', () => {
    const { model, passes, over } = rig()
    const busy = model('busy')
    void busy.run(11, work().run)
    for (let round = 0; round < 50; round++) passes(0, { 11: 1e6 })
    for (let round = 0; round < 50; round++) {
      passes(900, { 11: 1e6 })
      passes(-900, { 11: 1e6 })
    }
    expect(over).toEqual([])
    expect(busy.takenBytes).toBeLessThan(1 * MiB)
  })

  it('is told of the model that took most, once, and its runs are refused; the others go on', async () => {
    const { model, passes, over, active } = rig()
    const [greedy, meek] = [model('greedy'), model('meek')]
    const [one, other] = [work(), work()]
    const refused = greedy.run(11, one.run)
    const goesOn = meek.run(12, other.run)
    refused.catch(() => undefined)
    passes(800, { 11: 70, 12: 1 })
    expect(over).toEqual([])
    passes(800, { 11: 70, 12: 1 })
    passes(800, { 11: 70, 12: 1 })
    expect(over.map(([name]) => name)).toEqual(['greedy'])
    await expect(refused).rejects.toMatchObject({
      status: 'UNAVAILABLE',
      message: expect.stringMatching(
        /^model 'greedy' is unavailable: it took \d+ MiB.* the 1000 MiB .*modelServer\.modelMemoryBytes/,
      ) as string,
    })
    other.end()
    await goesOn
    // What the process is ended for is not written over.
    const told = active.length
    void meek.run(12, other.run)
    expect(active.length).toBe(told)
  })

  it('does not count what came and went while nothing ran', async () => {
    const { model, passes, over } = rig()
    const a = model('a')
    passes(5000, { [mainThread]: 9 })
    const run = work()
    const ended = a.run(11, run.run)
    passes(1, { 11: 9 })
    run.end()
    await ended
    expect(a.takenBytes).toBe(1 * MiB)
    expect(over).toEqual([])
  })

  it('is not what it is loaded with, of which each instance may take as much as the limit', async () => {
    const { accounts, passes, over } = rig()
    const account = accounts.open('a')
    const starts = [work(), work()]
    const started = Promise.all(starts.map(({ run }) => account.start(run)))
    // Their threads are not known yet.
    passes(1800, { 21: 50, 22: 50 })
    expect(account.takenBytes / MiB).toBe(1800)
    expect(over).toEqual([])
    for (const { end } of starts) end()
    await started
    account.loaded()
    expect(account.takenBytes).toBe(0)
    account.run(21, work().run).catch(() => undefined)
    passes(1100, { 21: 50 })
    expect(over.map(([name]) => name)).toEqual(['a'])
  })

  it('is not what another one is loaded with that starts beside it', async () => {
    const { accounts, passes, over } = rig()
    const slow = accounts.open('slow')
    const started = work()
    const starting = slow.start((onBegan) => {
      onBegan(21)
      return started.run()
    })
    for (let thread = 31; thread < 36; thread++) {
      const large = accounts.open(`large-${thread}`)
      const loading = work()
      const loaded = large.start((onBegan) => {
        onBegan(thread)
        return loading.run()
      })
      passes(900, { [thread]: 900, 21: 0 })
      expect(large.takenNow() / MiB).toBeCloseTo(900)
      loading.end()
      await loaded
      large.loaded()
    }
    expect(slow.takenNow()).toBe(0)
    started.end()
    await starting
    expect(over).toEqual([])
  })

  it('is what an instance took by its thread, and not what it is started with later', async () => {
    const { model, passes, over } = rig()
    const account = model('a')
    const [first, second] = [work(), work()]
    void account.run(11, first.run)
    passes(300, { 11: 10 })
    const started = account.start((onBegan) => {
      onBegan(12)
      return second.run()
    })
    passes(800, { 11: 0, 12: 10 })
    expect(account.takenBytes / MiB).toBe(1100)
    second.end()
    await started
    expect(account.takenBytes / MiB).toBe(300)
    expect(over).toEqual([])
  })

  it('is not what an instance needs beside its load, such as the first run of a size', async () => {
    const { model, passes, over } = rig()
    const account = model('a')
    const [served, warmed] = [work(), work()]
    const serving = account.run(11, served.run)
    passes(300, { 11: 10 })
    served.end()
    await serving
    const warming = account.prepare(11, warmed.run)
    passes(900, { 11: 10 })
    expect(account.takenBytes / MiB).toBe(1200)
    warmed.end()
    await warming
    expect(account.takenBytes / MiB).toBe(300)
    expect(over).toEqual([])
  })

  it('is told as kept once it does nothing, until the instance is gone', async () => {
    const { model, passes, clock } = rig()
    const a = model('a')
    const kept: number[] = []
    a.onKept((thread) => kept.push(thread))
    const run = work()
    const ended = a.run(11, run.run)
    passes(300, { 11: 9 })
    expect(kept).toEqual([])
    run.end()
    await ended
    clock.advance(50)
    expect(kept).toEqual([11])
    expect(a.keepsMuch(11)).toBe(true)
    a.forget(11)
    expect(a.keepsMuch(11)).toBe(false)
    expect(a.takenBytes).toBe(0)
  })

  it('is charged in full to all that run where the system counts no pages', () => {
    const { model, passes, over } = rig({ counts: false })
    const [a, b] = [model('a'), model('b')]
    a.run(11, work().run).catch(() => undefined)
    b.run(12, work().run).catch(() => undefined)
    passes(600)
    expect([a.takenBytes / MiB, b.takenBytes / MiB]).toEqual([600, 600])
    passes(600)
    expect(over).toHaveLength(1)
  })

  it('asks for nothing while nothing runs', async () => {
    const { model, active, clock } = rig()
    const run = work()
    const ended = model('a').run(11, run.run)
    expect(active).toEqual([['a']])
    run.end()
    await ended
    clock.advance(50)
    clock.advance(50)
    const told = active.length
    expect(active.at(-1)).toEqual([])
    clock.advance(60_000)
    expect(active.length).toBe(told)
  })
})
