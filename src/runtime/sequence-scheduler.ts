import type { SchedulerClock } from './scheduler-clock.js'
import type { BatchResult, Execution } from './backend.js'
import type { StatisticsRecorder } from './statistics-recorder.js'
import type { Tensor } from '../tensors/tensor.js'
import { ServingError } from '../tensors/serving-error.js'
import { mostTimerMs } from './scheduler-clock.js'
import type { ModelInstances } from './instance-group.js'
import type { PendingRequest } from './pending-request.js'
import { backendError, type RequestOutcome } from './request-outcome.js'
import type { SequenceBatch, SequenceStrategy } from './policies/sequence.js'
import type { Scheduler } from './scheduled-model.js'
import type { ControlState } from './sequence-controls.js'
import { newSequence, type Sequence, SequenceSlots } from './sequence-slots.js'
import { type ImplicitState, nextState } from './sequence-state.js'

export type SequenceRules = Readonly<{
  model: string
  strategy: SequenceStrategy
  /** A sequence that sends nothing for so long loses its slot. */
  idleMs: number
  controls: (state: ControlState) => readonly Tensor[]
  state: ImplicitState
}>

type Place = Readonly<{ sequence: Sequence; pending: PendingRequest }>

/** Requests of sequences: in order within each, on one instance for each, batched across them. */
export class SequenceScheduler implements Scheduler {
  readonly #slots: SequenceSlots
  /** Sequences whose last request has not come. */
  readonly #open = new Map<string, Sequence>()
  /** Instances whose last run has sequences that it has not given back. */
  readonly #settling = new Set<number>()
  #cancelTimer: (() => void) | undefined
  #waiting = 0

  constructor(
    readonly rules: SequenceRules,
    readonly instances: ModelInstances,
    readonly outcome: RequestOutcome,
    readonly statistics: StatisticsRecorder,
    readonly clock: SchedulerClock,
  ) {
    this.#slots = new SequenceSlots(instances.size, rules.strategy.slotsPerInstance)
  }

  get waiting(): number {
    return this.#waiting
  }

  offer(pending: PendingRequest): void {
    const problem = this.#problemOf(pending)
    if (problem !== undefined) {
      this.outcome.fail(pending, new ServingError('INVALID_ARG', problem))
      return
    }
    const { id, end } = pending.request.sequence!
    const sequence = this.#open.get(id) ?? this.#begin(id)
    sequence.cancelIdleTimer?.()
    sequence.queue.push(pending)
    this.#waiting += 1
    this.statistics.pending += 1
    pending.watch(() => this.#cancel(sequence, pending))
    this.#expireWith(sequence, pending)
    if (end) {
      sequence.ended = true
      this.#open.delete(id)
    }
    this.pump()
  }

  pump(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    const nowMs = this.clock.nowMs()
    let wakeInMs = Infinity
    for (let instance = 0; instance < this.instances.size; instance++) {
      if (!this.instances.isIdle(instance) || this.#settling.has(instance)) continue
      const decision = this.rules.strategy.decide(this.#slots.of(instance), nowMs)
      if (decision.kind === 'run') void this.#run(instance, decision.batch)
      else if (decision.kind === 'wait') wakeInMs = Math.min(wakeInMs, decision.forMs)
    }
    if (wakeInMs !== Infinity) this.#cancelTimer = this.clock.after(wakeInMs, () => this.pump())
  }

  clear(): readonly PendingRequest[] {
    this.#cancelTimer?.()
    const left = this.#slots.all().flatMap((sequence) => {
      sequence.cancelIdleTimer?.()
      sequence.cancelExpiry?.()
      return sequence.queue.splice(0)
    })
    for (const pending of left) this.#leave(pending)
    this.#open.clear()
    return left
  }

  /** In Triton's words and order; these have no request id before them. */
  #problemOf({ request, batchSize }: PendingRequest): string | undefined {
    const { sequence } = request
    const { model } = this.rules
    if (batchSize > 1)
      return `inference request to model '${model}' must specify batch-size 1 due to requirements of sequence batcher`
    if (sequence === undefined || sequence.id === '' || sequence.id === '0')
      return `inference request to model '${model}' must specify a non-zero or non-empty correlation ID`
    if (!sequence.start && !this.#open.has(sequence.id))
      return `inference request for sequence ${sequence.id} to model '${model}' must specify the START flag on the first request of the sequence`
    return undefined
  }

  #begin(id: string): Sequence {
    const sequence = newSequence(id)
    this.#open.set(id, sequence)
    this.#slots.place(sequence)
    return sequence
  }

  /**
   * The shortest time-out of its requests ends a sequence that has no slot by then, with all its requests. With a slot, none counts.
   *
   * @see triton-inference-server/core, src/sequence_batch_scheduler/sequence_batch_scheduler.cc, SequenceBatchScheduler::ReaperThread
   */
  #expireWith(sequence: Sequence, { enqueuedMs, timeoutUs }: PendingRequest): void {
    const expiresMs = enqueuedMs + timeoutUs / 1e3
    if (timeoutUs === 0 || sequence.place !== undefined || expiresMs >= sequence.expiresMs) return
    const forMs = Math.max(0, expiresMs - this.clock.nowMs())
    if (forMs > mostTimerMs) return
    sequence.cancelExpiry?.()
    sequence.expiresMs = expiresMs
    sequence.cancelExpiry = this.clock.after(forMs, () => this.#expire(sequence))
  }

  #expire(sequence: Sequence): void {
    this.#forget(sequence)
    for (const pending of sequence.queue.splice(0)) {
      this.#leave(pending)
      this.outcome.sequenceTimedOut(pending)
    }
  }

  /** Its id may begin another sequence; what it had in the slots or before them goes to the next. */
  #forget(sequence: Sequence): void {
    if (this.#open.get(sequence.id) === sequence) this.#open.delete(sequence.id)
    sequence.cancelExpiry?.()
    this.#slots.release(sequence)
  }

  async #run(instance: number, batch: SequenceBatch): Promise<void> {
    const places = batch.map((sequence) => (sequence === undefined ? undefined : this.#take(sequence)))
    if (this.rules.strategy.together) this.#settling.add(instance)
    const start = () => {
      const startedMs = this.clock.nowMs()
      for (const place of places) if (place !== undefined) place.pending.startedMs = startedMs
    }
    try {
      const result = await this.instances.run(this.#executions(places), instance, start)
      this.statistics.recordExecution(places.length, result.times)
      for (const [index, place] of places.entries())
        if (place !== undefined) await this.#settle(place, result, index)
    } catch (error) {
      const failure = backendError(error)
      for (const place of places) if (place !== undefined) this.outcome.fail(place.pending, failure)
    }
    for (const place of places) if (place !== undefined) this.#afterRun(place)
    this.#settling.delete(instance)
    this.pump()
  }

  #take(sequence: Sequence): Place {
    const pending = sequence.queue.shift()!
    sequence.running = true
    pending.startedMs = this.clock.nowMs()
    this.#leave(pending)
    return { sequence, pending }
  }

  #executions(places: readonly (Place | undefined)[]): readonly Execution[] {
    const like = places.find((place) => place !== undefined)!.pending.checked
    return places.map((place): Execution => {
      if (place === undefined) {
        const controls = this.rules.controls({ start: false, end: false, ready: false, id: '' })
        const empty = [...like.inputs.values()].map(emptied)
        return this.#execution([...empty, ...controls, ...this.rules.state.initial()], [], undefined)
      }
      const { sequence, pending } = place
      const { id, start, end } = pending.request.sequence!
      const state = start ? undefined : sequence.state
      const inputs = [
        ...pending.checked.inputs.values(),
        ...this.rules.controls({ start, end, ready: true, id }),
        ...(state ?? this.rules.state.initial()),
      ]
      return this.#execution(inputs, pending.checked.outputs, pending)
    })
  }

  #execution(
    inputs: readonly Tensor[],
    outputs: readonly string[],
    pending: PendingRequest | undefined,
  ): Execution {
    return {
      inputs: new Map(inputs.map((tensor) => [tensor.name, tensor])),
      outputs: [...outputs, ...this.rules.state.inputOf.keys()],
      batchSize: 1,
      sequence: pending?.request.sequence,
      signal: pending?.request.signal,
    }
  }

  /** The state is kept before the outputs are given away, and with them perhaps their buffers. */
  async #settle({ sequence, pending }: Place, result: BatchResult, index: number): Promise<void> {
    const outputs = result.results[index]
    if (Array.isArray(outputs))
      sequence.state = await nextState(this.rules.state, outputs as readonly Tensor[])
    this.outcome.settle(pending, result, index)
  }

  #afterRun({ sequence, pending }: Place): void {
    sequence.running = false
    if (pending.request.sequence?.end === true && sequence.ended && sequence.queue.length === 0)
      this.#slots.release(sequence)
    else if (sequence.queue.length === 0) this.#startIdleTimer(sequence)
  }

  #startIdleTimer(sequence: Sequence): void {
    sequence.cancelIdleTimer?.()
    sequence.cancelIdleTimer = this.clock.after(this.rules.idleMs, () => {
      this.#forget(sequence)
      this.pump()
    })
  }

  #cancel(sequence: Sequence, pending: PendingRequest): void {
    const at = sequence.queue.indexOf(pending)
    if (at < 0) return
    sequence.queue.splice(at, 1)
    this.#leave(pending)
    this.outcome.cancelled(pending)
    if (sequence.queue.length === 0 && !sequence.running) this.#startIdleTimer(sequence)
  }

  #leave(pending: PendingRequest): void {
    this.#waiting -= 1
    this.statistics.pending -= 1
    pending.unwatch()
  }
}

/** Zeros in the place of a request. */
function emptied({ name, datatype, shape, data }: Tensor): Tensor {
  const bytes =
    datatype === 'BYTES' ? shape.reduce((product, size) => product * size, 1) * 4 : data.byteLength
  return { name, datatype, shape, data: new Uint8Array(bytes) }
}
