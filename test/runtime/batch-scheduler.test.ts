import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { SchedulerClock } from '../../src/runtime/scheduler-clock.js'
import { BatchScheduler } from '../../src/runtime/batch-scheduler.js'
import { NewestPerStream } from '../../src/runtime/policies/newest-per-stream.js'

type Item = Readonly<{ streamId: string; enqueuedMs: number; number: number }>

/** Time that moves when the test says so. */
class FakeClock implements SchedulerClock {
  #now = 0
  #timers: { atMs: number; call: () => void }[] = []

  nowMs(): number {
    return this.#now
  }

  after(forMs: number, call: () => void): () => void {
    const timer = { atMs: this.#now + forMs, call }
    this.#timers.push(timer)
    return () => (this.#timers = this.#timers.filter((other) => other !== timer))
  }

  advanceTo(ms: number): void {
    for (;;) {
      const next = this.#timers.filter((timer) => timer.atMs <= ms).sort((a, b) => a.atMs - b.atMs)[0]
      if (next === undefined) break
      this.#timers = this.#timers.filter((timer) => timer !== next)
      this.#now = next.atMs
      next.call()
    }
    this.#now = ms
  }
}

type Batch = { items: readonly Item[]; takenMs: number; startedMs: number }

/** A scheduler with runners that take a fixed time, and up to `ahead` batches behind those that run. */
function simulate(options: {
  runners: number
  runMs: number
  maxBatchSize: number
  maxQueueDelayMs: number
  ahead?: number
}) {
  const clock = new FakeClock()
  const batches: Batch[] = []
  const behind: Batch[] = []
  let idle = options.runners
  const begin = (batch: Batch): void => {
    batch.startedMs = clock.nowMs()
    clock.after(options.runMs, () => {
      const next = behind.shift()
      if (next === undefined) idle += 1
      else begin(next)
      pumped.pump()
    })
  }
  const newest = new NewestPerStream<Item>(options)
  const pumped: BatchScheduler<Item> = new BatchScheduler(
    newest,
    {
      get idle() {
        return idle
      },
      get ahead() {
        return (options.ahead ?? 0) - behind.length
      },
      start(items: readonly Item[]) {
        const batch = { items, takenMs: clock.nowMs(), startedMs: Number.NaN }
        batches.push(batch)
        if (idle > 0) {
          idle -= 1
          begin(batch)
        } else behind.push(batch)
      },
    },
    clock,
  )
  const scheduler = {
    get waiting() {
      return newest.waiting
    },
    clear: () => pumped.clear(),
    offer(item: Item) {
      const superseded = newest.put(item)
      pumped.pump()
      return superseded
    },
  }
  return { clock, scheduler, batches, idle: () => idle }
}

describe('BatchScheduler with the newest of each stream', () => {
  it('runs a frame at once when a runner is idle and batches are off', () => {
    const { scheduler, batches } = simulate({ runners: 1, runMs: 10, maxBatchSize: 1, maxQueueDelayMs: 5 })
    scheduler.offer({ streamId: 'a', enqueuedMs: 0, number: 1 })
    expect(batches).toHaveLength(1)
  })

  it('gathers frames of several streams for the queue delay, then runs them together', () => {
    const { clock, scheduler, batches } = simulate({
      runners: 1,
      runMs: 10,
      maxBatchSize: 8,
      maxQueueDelayMs: 5,
    })
    scheduler.offer({ streamId: 'slow', enqueuedMs: 0, number: 0 })
    clock.advanceTo(20)
    scheduler.offer({ streamId: 'a', enqueuedMs: 20, number: 1 })
    clock.advanceTo(22)
    scheduler.offer({ streamId: 'b', enqueuedMs: 22, number: 2 })
    expect(batches).toHaveLength(1)
    clock.advanceTo(25)
    expect(batches[1]?.items.map((item) => item.streamId)).toEqual(['a', 'b'])
    expect(batches[1]?.startedMs).toBe(25)
  })

  it('hands the waiting frames back when it is cleared, and starts none of them', () => {
    const { clock, scheduler, batches } = simulate({
      runners: 1,
      runMs: 10,
      maxBatchSize: 1,
      maxQueueDelayMs: 0,
    })
    scheduler.offer({ streamId: 'a', enqueuedMs: 0, number: 1 })
    scheduler.offer({ streamId: 'b', enqueuedMs: 0, number: 2 })
    expect(scheduler.clear().map((item) => item.number)).toEqual([2])
    clock.advanceTo(100)
    expect(batches).toHaveLength(1)
  })

  it('hands full batches to busy runners that take them, and keeps what does not fill one', () => {
    const { scheduler, batches } = simulate({
      runners: 1,
      runMs: 10,
      maxBatchSize: 2,
      maxQueueDelayMs: 5,
      ahead: 1,
    })
    const offer = (streamId: string): void => void scheduler.offer({ streamId, enqueuedMs: 0, number: 0 })
    offer('a')
    offer('b')
    expect(batches.map(({ items }) => items.length)).toEqual([1])
    offer('c')
    expect(batches.map(({ items }) => items.length)).toEqual([1, 2])
    offer('d')
    offer('e')
    expect(batches).toHaveLength(2)
    expect(scheduler.waiting).toBe(2)
  })

  it('under any load ends every item once, in order, within the batch limit and the delay', () => {
    const load = fc.record({
      runners: fc.integer({ min: 1, max: 4 }),
      ahead: fc.integer({ min: 0, max: 4 }),
      runMs: fc.integer({ min: 1, max: 40 }),
      maxBatchSize: fc.integer({ min: 1, max: 8 }),
      maxQueueDelayMs: fc.integer({ min: 0, max: 20 }),
      arrivals: fc.array(
        fc.record({ stream: fc.integer({ min: 0, max: 5 }), gapMs: fc.integer({ min: 0, max: 15 }) }),
        {
          maxLength: 120,
        },
      ),
    })
    fc.assert(
      fc.property(load, ({ arrivals, ...options }) => {
        const { clock, scheduler, batches, idle } = simulate(options)
        const superseded: Item[] = []
        let nowMs = 0
        arrivals.forEach(({ stream, gapMs }, number) => {
          nowMs += gapMs
          clock.advanceTo(nowMs)
          const older = scheduler.offer({ streamId: `cam-${stream}`, enqueuedMs: nowMs, number })
          if (older !== undefined) superseded.push(older)
        })
        clock.advanceTo(nowMs + 10_000)

        const run = batches.flatMap((batch) => batch.items)
        const ended = [...run, ...superseded].map((item) => item.number).sort((a, b) => a - b)
        expect(ended).toEqual(arrivals.map((_, number) => number))
        for (const batch of batches) {
          expect(batch.items.length).toBeLessThanOrEqual(options.maxBatchSize)
          expect(batch.startedMs - batch.takenMs).toBeLessThanOrEqual(
            Math.ceil(options.ahead / options.runners) * options.runMs,
          )
          expect(new Set(batch.items.map((item) => item.streamId)).size).toBe(batch.items.length)
        }
        for (const streamId of new Set(run.map((item) => item.streamId))) {
          const numbers = run.filter((item) => item.streamId === streamId).map((item) => item.number)
          expect(numbers).toEqual([...numbers].sort((a, b) => a - b))
        }
        expect(idle()).toBe(options.runners)
      }),
      { numRuns: 300 },
    )
  })

  it('never lets an item wait longer than the delay while a runner is idle', () => {
    const load = fc.record({
      runners: fc.integer({ min: 1, max: 3 }),
      runMs: fc.integer({ min: 1, max: 20 }),
      maxBatchSize: fc.integer({ min: 1, max: 8 }),
      maxQueueDelayMs: fc.integer({ min: 0, max: 10 }),
      arrivals: fc.array(
        fc.record({ stream: fc.integer({ min: 0, max: 9 }), gapMs: fc.integer({ min: 0, max: 6 }) }),
        {
          maxLength: 100,
        },
      ),
    })
    fc.assert(
      fc.property(load, ({ arrivals, ...options }) => {
        const { clock, scheduler, batches, idle } = simulate(options)
        let nowMs = 0
        let idleWhileWaitingMs = 0
        let started = 0
        for (const { stream, gapMs } of arrivals) {
          for (let step = 0; step < gapMs; step++) {
            clock.advanceTo(++nowMs)
            const wasteful = idle() > 0 && scheduler.waiting > 0 && batches.length === started
            idleWhileWaitingMs = wasteful ? idleWhileWaitingMs + 1 : 0
            started = batches.length
            expect(idleWhileWaitingMs).toBeLessThanOrEqual(options.maxQueueDelayMs)
          }
          scheduler.offer({ streamId: `cam-${stream}`, enqueuedMs: nowMs, number: 0 })
        }
      }),
      { numRuns: 200 },
    )
  })

  it('gives every camera its share under overload, however fast the others deliver', () => {
    const overload = fc
      .record({ runners: fc.integer({ min: 1, max: 3 }), maxBatchSize: fc.constantFrom(1, 4) })
      .chain(({ runners, maxBatchSize }) => {
        // More cameras than could ever run at once, each delivering several frames in the time of a run.
        const atOnce = runners * maxBatchSize
        const length = { minLength: atOnce + 1, maxLength: atOnce + 10 }
        return fc.record({
          runners: fc.constant(runners),
          maxBatchSize: fc.constant(maxBatchSize),
          intervalsMs: fc.array(fc.integer({ min: 1, max: 8 }), length).map((list) => list.map((n) => n * 5)),
        })
      })
    fc.assert(
      fc.property(overload, ({ runners, maxBatchSize, intervalsMs }) => {
        const { clock, scheduler, batches } = simulate({
          runners,
          runMs: 120,
          maxBatchSize,
          maxQueueDelayMs: 5,
        })
        for (let ms = 0; ms < 60_000; ms += 5) {
          clock.advanceTo(ms)
          intervalsMs.forEach((intervalMs, camera) => {
            if (ms % intervalMs === 0)
              scheduler.offer({ streamId: `cam-${camera}`, enqueuedMs: ms, number: ms })
          })
        }
        const run = batches.flatMap((batch) => batch.items)
        const served = intervalsMs.map(
          (_, camera) => run.filter((item) => item.streamId === `cam-${camera}`).length,
        )
        const mean = run.length / served.length
        expect(Math.min(...served)).toBeGreaterThanOrEqual(0.8 * mean)
      }),
      { numRuns: 40 },
    )
  })
})
