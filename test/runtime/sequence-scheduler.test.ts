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
    together: true,
    decide: (slots, nowMs) => decideDirect(slots, nowMs, { maxDelayMs: 0, utilization: 0, batched: true }),
  },
  oldest: {
    slotsPerInstance: 4,
    together: false,
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
  const said: string[] = []
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

  function send(id: string, start: boolean, end: boolean, timeoutUs = 0): void {
    const abort = new AbortController()
    const settled: string[] = []
    const request = sent.length
    const pending = new PendingRequest(
      inferRequest([], { sequence: { id, start, end }, signal: abort.signal, timeoutUs }),
      { inputs: new Map(), outputs: [String(request)], mayLack: false, batchSize: 1, shapeKey: '' },
      clock.nowMs(),
      () => settled.push('answered'),
      (error) => {
        const { reason = 'failed', message } = error as Error & { reason?: string }
        settled.push(reason)
        said.push(message)
      },
    )
    sent.push({ id, abort, settled })
    scheduler.offer(pending)
  }

  return { clock, runs, started, sent, said, scheduler, send, statistics }
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

/** Sequences that fill every slot of one instance and stay. */
async function full(kind: 'direct' | 'oldest') {
  const running = await rig(1, strategies[kind])
  for (let slot = 0; slot < strategies[kind].slotsPerInstance; slot++) {
    running.send(`slot-${slot}`, true, false)
    await settle()
  }
  const outcomes = (id: string) =>
    running.sent.filter((one) => one.id === id).flatMap(({ settled }) => settled)
  return { ...running, outcomes }
}

const expired = 'timeout of the corresponding sequence has been expired'

describe.each(['direct', 'oldest'] as const)('time-outs of sequences, %s', (kind) => {
  it('ends a sequence that waits for a slot, with all its requests, at the shortest of their time-outs', async () => {
    const { clock, send, said, outcomes, statistics, scheduler } = await full(kind)
    send('late', true, false, 5_000)
    send('late', false, false)
    send('late', false, true, 3_000)
    send('patient', true, true)
    clock.advance(2.9)
    expect(outcomes('late')).toEqual([])
    clock.advance(0.2)
    expect(outcomes('late')).toEqual(['REJECTED', 'REJECTED', 'REJECTED'])
    expect(said).toEqual([expired, expired, expired])
    expect(statistics.failures.REJECTED).toBe(3)
    expect(outcomes('patient')).toEqual([])
    expect(scheduler.waiting).toBe(statistics.pending)
  })

  it('says of what comes after that it has to start anew, and lets it', async () => {
    const { clock, send, said, outcomes } = await full(kind)
    send('late', true, false, 1_000)
    clock.advance(1)
    send('late', false, true, 1_000)
    expect(said.at(-1)).toContain(
      "inference request for sequence late to model 'm' must specify the START flag",
    )
    send('late', true, true)
    clock.advance(60_000)
    expect(outcomes('late')).toEqual(['REJECTED', 'OTHER'])
  })

  it('leaves a sequence alone that has a slot, and one that ended before another of its id', async () => {
    const { clock, send, runs, outcomes } = await full(kind)
    send('slot-1', false, false, 1)
    clock.advance(60_000)
    expect(outcomes('slot-1')).toEqual([])
    send('twice', true, true, 9_000_000)
    send('twice', true, true, 1_000)
    clock.advance(1)
    expect(outcomes('twice')).toEqual(['REJECTED'])
    send('slot-0', false, true)
    for (let ended = 0; ended < 4; ended++) {
      for (const run of runs) run.end(false)
      await settle()
      clock.advance(10)
    }
    expect(outcomes('twice')).toEqual(['answered', 'REJECTED'])
  })

  it.each([2 ** 31 * 1e3, Number.MAX_SAFE_INTEGER])(
    'takes a time-out of %i us for none',
    async (timeoutUs) => {
      const { send, outcomes } = await full(kind)
      send('late', true, true, timeoutUs)
      await settle()
      expect(outcomes('late')).toEqual([])
    },
  )
})

it('counts a batch of direct sequences with its empty places', async () => {
  const { send, runs, statistics } = await rig(1, strategies.direct)
  for (const id of ['a', 'b', 'c']) send(id, true, false)
  for (let run = 0; run < 2; run++) {
    runs[run]?.end(false)
    await settle()
  }
  send('b', false, false)
  runs[2]?.end(false)
  await settle()
  const { batches, inferenceCount, executionCount } = statistics.statistics()
  expect({ inferenceCount, executionCount }).toEqual({ inferenceCount: 4, executionCount: 3 })
  expect(batches.map(({ batchSize, computeInfer }) => [batchSize, computeInfer.count])).toEqual([
    [1, 1],
    [2, 1],
    [3, 1],
  ])
})

it('runs what direct sequences sent during a run in one batch', async () => {
  const { send, runs } = await rig(1, strategies.direct)
  send('a', true, false)
  send('b', true, false)
  send('a', false, false)
  runs[0]?.end(false)
  await settle()
  expect(runs.map(({ slots }) => slots.map(({ id, request }) => `${id}${request}`))).toEqual([
    ['a0'],
    ['a2', 'b1'],
  ])
})
