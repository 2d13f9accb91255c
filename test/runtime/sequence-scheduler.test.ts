import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { emptyModelConfig } from '../../src/repository/model-config.js'
import type { BackendInstance, BatchResult, Execution } from '../../src/runtime/backend.js'
import { InstanceGroup } from '../../src/runtime/instance-group.js'
import { PendingRequest } from '../../src/runtime/pending-request.js'
import { RequestOutcome } from '../../src/runtime/request-outcome.js'
import { decideDirect, decideOldest, type SequenceStrategy } from '../../src/runtime/policies/sequence.js'
import { SequenceScheduler } from '../../src/runtime/sequence-scheduler.js'
import { implicitState } from '../../src/runtime/sequence-state.js'
import { StatisticsRecorder } from '../../src/runtime/statistics-recorder.js'
import { ManualClock } from '../support/manual-clock.js'
import { inferRequest } from '../support/scheduled-model.js'
import { silentLog } from '../support/silent-log.js'

type Slot = Readonly<{ id: string; request: number; instance: number; slot: number }>
type Run = { slots: readonly Slot[]; end: (failed: boolean) => void }
type Sent = { id: string; abort: AbortController; settled: string[] }

const maxBatchSize = 3
const times = { computeInputNs: 0, computeInferNs: 1e9, computeOutputNs: 0 }

const strategies: Readonly<Record<'direct' | 'oldest', SequenceStrategy>> = {
  direct: {
    slotsPerInstance: maxBatchSize,
    decide: (slots, nowMs) => decideDirect(slots, nowMs, { maxDelayMs: 0, utilization: 0, batched: true }),
  },
  oldest: {
    slotsPerInstance: 4,
    decide: (slots, nowMs) =>
      decideOldest(slots, nowMs, { maxBatchSize, preferredSizes: [2], maxDelayMs: 5 }),
  },
}

/** A scheduler of sequences over instances whose runs end when the test says so. */
async function rig(instances: number, strategy: SequenceStrategy) {
  const clock = new ManualClock()
  const runs: Run[] = []
  const started: Slot[] = []
  const sent: Sent[] = []
  const instance = (index: number): BackendInstance => ({
    execute: (batch: readonly Execution[]) =>
      new Promise<BatchResult>((resolve, reject) => {
        const slots = batch.flatMap(({ sequence, outputs }, slot) =>
          sequence === undefined
            ? []
            : [{ id: sequence.id, request: Number(outputs[0]), instance: index, slot }],
        )
        started.push(...slots)
        const results = batch.map(({ outputs }) =>
          outputs.map((name) => ({ name, datatype: 'UINT8' as const, shape: [], data: new Uint8Array() })),
        )
        runs.push({
          slots,
          end: (failed) => (failed ? reject(new Error('broken')) : resolve({ results, times })),
        })
      }),
    close: () => Promise.resolve(),
  })
  let freed: () => void = () => undefined
  const set = new InstanceGroup({
    name: 'm',
    count: () => instances,
    start: (index) => Promise.resolve(instance(index)),
    clock,
    log: silentLog(),
    onIdle: () => freed(),
    onHung: () => undefined,
    runTimeoutMs: 1e9,
    onBroken: () => undefined,
  })
  await set.start()
  const statistics = new StatisticsRecorder('m', '1')
  const scheduler = new SequenceScheduler(
    {
      model: 'm',
      strategy,
      idleMs: 1e6,
      controls: () => [],
      state: await implicitState(emptyModelConfig, ''),
    },
    set,
    new RequestOutcome(statistics, (tensor) => tensor),
    statistics,
    clock,
  )
  freed = () => scheduler.pump()

  function send(id: string, start: boolean, end: boolean): void {
    const abort = new AbortController()
    const settled: string[] = []
    const request = sent.length
    const pending = new PendingRequest(
      inferRequest([], { sequence: { id, start, end }, signal: abort.signal }),
      { inputs: new Map(), outputs: [String(request)], mayLack: false, batchSize: 1, shapeKey: '' },
      clock.nowMs(),
      () => settled.push('answered'),
      (error) => settled.push((error as Error & { reason?: string }).reason ?? 'failed'),
    )
    sent.push({ id, abort, settled })
    scheduler.offer(pending)
  }

  return { clock, runs, started, sent, scheduler, send, statistics }
}

/** Lets everything that waits for a settled promise go on. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

const command = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('send' as const), sequence: fc.nat(7), last: fc.nat(5) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('end' as const), which: fc.nat(3), failed: fc.boolean() }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 6 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cancel' as const), which: fc.nat(30) }) },
)

describe.each(['direct', 'oldest'] as const)('SequenceScheduler, %s', (kind) => {
  it('loses no request, answers none twice, keeps the order and place of each sequence', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 3 }),
        fc.array(command, { maxLength: 50 }),
        async (instances, commands) => {
          const { clock, runs, started, sent, scheduler, send, statistics } = await rig(
            instances,
            strategies[kind],
          )
          const inFlight = new Set<Run>()
          let seen = 0
          const check = async () => {
            await settle()
            for (; seen < runs.length; seen++) {
              const run = runs[seen]!
              inFlight.add(run)
              expect(run.slots.length).toBeGreaterThan(0)
              expect(run.slots.length).toBeLessThanOrEqual(maxBatchSize)
            }
            expect(inFlight.size).toBeLessThanOrEqual(instances)
            const running = [...inFlight].flatMap(({ slots }) => slots.map(({ id }) => id))
            expect(new Set(running).size).toBe(running.length)
          }
          const end = (run: Run | undefined, failed: boolean) => {
            if (run === undefined) return
            inFlight.delete(run)
            run.end(failed)
          }
          const open = new Map<number, string>()
          let begun = 0
          for (const step of commands) {
            if (step.do === 'send') {
              const id = open.get(step.sequence)
              const last = step.last === 0
              const sequence = id ?? String(++begun)
              if (last) open.delete(step.sequence)
              else open.set(step.sequence, sequence)
              send(sequence, id === undefined, last)
            } else if (step.do === 'end')
              end([...inFlight][step.which % Math.max(1, inFlight.size)], step.failed)
            else if (step.do === 'pass') clock.advance(step.ms)
            else sent[step.which]?.abort.abort()
            await check()
          }
          for (const id of open.values()) send(id, false, true)
          for (let left = 0; left <= 2 * sent.length; left++) {
            for (const run of [...inFlight]) end(run, false)
            clock.advance(100)
            await check()
          }
          clock.advance(2e6)
          for (let left = 0; left <= 2 * sent.length; left++) {
            for (const run of [...inFlight]) end(run, false)
            clock.advance(100)
            await check()
          }
          expect(scheduler.waiting).toBe(0)
          expect(statistics.pending).toBe(0)
          expect(sent.map(({ settled }) => settled.length)).toEqual(sent.map(() => 1))
          expect(new Set(started.map(({ request }) => request)).size).toBe(started.length)
          for (const id of new Set(sent.map((one) => one.id))) {
            const own = started.filter((slot) => slot.id === id)
            const order = own.map(({ request }) => request)
            expect(order).toEqual([...order].sort((a, b) => a - b))
            expect(new Set(own.map(({ instance }) => instance)).size).toBeLessThanOrEqual(1)
            if (kind === 'direct') expect(new Set(own.map(({ slot }) => slot)).size).toBeLessThanOrEqual(1)
          }
        },
      ),
      { numRuns: 150 },
    )
  }, 20_000)
})
