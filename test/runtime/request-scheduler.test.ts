import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { BackendInstance, BatchResult, Execution } from '../../src/runtime/backend.js'
import { InstanceGroup } from '../../src/runtime/instance-group.js'
import { PendingRequest } from '../../src/runtime/pending-request.js'
import { plainQueue } from '../../src/runtime/policies/queue-rules.js'
import { RequestOutcome } from '../../src/runtime/request-outcome.js'
import { RequestScheduler, type RequestSchedulerRules } from '../../src/runtime/request-scheduler.js'
import { StatisticsRecorder } from '../../src/runtime/statistics-recorder.js'
import { ManualClock } from '../support/manual-clock.js'
import { inferRequest } from '../support/scheduled-model.js'
import { silentLog } from '../support/silent-log.js'

type Run = { batch: readonly Execution[]; end: (failed: boolean) => void }
type Sent = { pending: PendingRequest; abort: AbortController; settled: string[] }

const times = { computeInputNs: 0, computeInferNs: 1e9, computeOutputNs: 0 }

/** A scheduler over instances whose runs end when the test says so. */
async function rig(instances: number, rules: RequestSchedulerRules) {
  const clock = new ManualClock()
  const runs: Run[] = []
  const answered: number[] = []
  const started: number[] = []
  const sent: Sent[] = []
  const instance: BackendInstance = {
    execute: (batch) =>
      new Promise<BatchResult>((resolve, reject) => {
        started.push(...batch.map((execution) => Number(execution.outputs[0])))
        const results = batch.map((execution) =>
          execution.outputs.map((name) => ({
            name,
            datatype: 'UINT8' as const,
            shape: [],
            data: new Uint8Array(),
          })),
        )
        runs.push({
          batch,
          end: (failed) => (failed ? reject(new Error('broken')) : resolve({ results, times })),
        })
      }),
    close: () => Promise.resolve(),
  }
  let freed: () => void = () => undefined
  const set = new InstanceGroup({
    name: 'm',
    count: () => instances,
    start: () => Promise.resolve(instance),
    clock,
    log: silentLog(),
    onIdle: () => freed(),
    onHung: () => undefined,
    runTimeoutMs: 1e9,
    onBroken: () => undefined,
  })
  await set.start()
  const statistics = new StatisticsRecorder('m', '1')
  const scheduler = new RequestScheduler(
    rules,
    set,
    new RequestOutcome(statistics, (tensor) => tensor),
    statistics,
    clock,
  )
  freed = () => scheduler.pump()

  function send(batchSize: number, shapeKey: string, priority: number): void {
    const abort = new AbortController()
    const settled: string[] = []
    const id = sent.length
    const pending = new PendingRequest(
      inferRequest([], { priority, signal: abort.signal }),
      { inputs: new Map(), outputs: [String(id)], mayLack: false, batchSize, shapeKey },
      clock.nowMs(),
      () => {
        settled.push('answered')
        answered.push(id)
      },
      (error) => settled.push((error as Error & { reason?: string }).reason ?? 'failed'),
    )
    sent.push({ pending, abort, settled })
    scheduler.offer(pending)
  }

  return { clock, runs, answered, started, sent, scheduler, set, send, statistics }
}

/** Lets everything that waits for a settled promise go on. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

const command = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('send' as const),
      size: fc.integer({ min: 1, max: 4 }),
      shape: fc.constantFrom('a', 'a', 'a', 'b'),
      priority: fc.integer({ min: 0, max: 2 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('end' as const), which: fc.nat(3), failed: fc.boolean() }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 15 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cancel' as const), which: fc.nat(30) }) },
)

const setting = fc.record({
  instances: fc.integer({ min: 1, max: 3 }),
  delayMs: fc.constantFrom(0, 10),
  preferred: fc.constantFrom([4], [2, 4], [3]),
  preserveOrdering: fc.boolean(),
  timeoutMs: fc.constantFrom(0, 8, 25),
})

describe('RequestScheduler', () => {
  it('loses no request, answers none twice, keeps limits, delays and order', async () => {
    await fc.assert(
      fc.asyncProperty(setting, fc.array(command, { maxLength: 40 }), async (chosen, commands) => {
        const maxBatchSize = 4
        const level = {
          maxSize: 0,
          timeoutMs: chosen.timeoutMs,
          mayShorten: true,
          onTimeout: 'REJECT' as const,
        }
        const { clock, runs, answered, started, sent, scheduler, set, send, statistics } = await rig(
          chosen.instances,
          {
            queue: { levels: [level, { ...level, onTimeout: 'DELAY' }], defaultLevel: 1 },
            batches: { maxBatchSize, preferredSizes: chosen.preferred, maxDelayMs: chosen.delayMs },
            preserveOrdering: chosen.preserveOrdering,
          },
        )
        const inFlight = new Set<Run>()
        let seen = 0
        const check = async () => {
          await settle()
          for (; seen < runs.length; seen++) {
            const run = runs[seen]!
            inFlight.add(run)
            expect(run.batch.reduce((sum, one) => sum + one.batchSize, 0)).toBeLessThanOrEqual(maxBatchSize)
            const shapes = run.batch.map((one) => sent[Number(one.outputs[0])]!.pending.shapeKey)
            expect(new Set(shapes).size).toBe(1)
          }
          expect(inFlight.size).toBeLessThanOrEqual(chosen.instances)
          if (set.idle > 0)
            for (const { pending, settled } of sent)
              if (
                settled.length === 0 &&
                pending.startedMs === 0 &&
                !started.includes(Number(pending.checked.outputs[0]))
              )
                expect(clock.nowMs() - pending.enqueuedMs).toBeLessThan(Math.max(chosen.delayMs, 1e-9))
        }
        const end = (run: Run | undefined, failed: boolean) => {
          if (run === undefined) return
          inFlight.delete(run)
          run.end(failed)
        }
        for (const step of commands) {
          if (step.do === 'send') send(step.size, step.shape, step.priority)
          else if (step.do === 'end') end([...inFlight][step.which % Math.max(1, inFlight.size)], step.failed)
          else if (step.do === 'pass') clock.advance(step.ms)
          else sent[step.which]?.abort.abort()
          await check()
        }
        for (let left = 0; left <= sent.length; left++) {
          for (const run of [...inFlight]) end(run, false)
          clock.advance(100)
          await check()
        }
        expect(scheduler.waiting).toBe(0)
        expect(statistics.pending).toBe(0)
        expect(sent.map(({ settled }) => settled.length)).toEqual(sent.map(() => 1))
        expect(new Set(started).size).toBe(started.length)
        if (chosen.preserveOrdering)
          expect(answered).toEqual(started.filter((id) => sent[id]!.settled[0] === 'answered'))
      }),
      { numRuns: 300 },
    )
  })

  it('hands requests out one by one where nothing is batched', async () => {
    const { runs, send } = await rig(1, { queue: plainQueue, batches: undefined, preserveOrdering: false })
    send(1, '', 0)
    send(3, '', 0)
    expect(runs.map(({ batch }) => batch.length)).toEqual([1])
    runs[0]!.end(false)
    await settle()
    expect(runs.map(({ batch }) => batch.length)).toEqual([1, 1])
  })
})
