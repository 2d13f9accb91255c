import type { Tensor } from '../tensors/tensor.js'
import type { PendingRequest } from './pending-request.js'

/** Requests that share a state, in the model or kept by the server: one at a time, always on one instance. */
export type Sequence = {
  readonly id: string
  /** Requests that have not started. */
  readonly queue: PendingRequest[]
  /** Where it runs; `undefined` while it waits for a slot. */
  place: Readonly<{ instance: number; slot: number }> | undefined
  running: boolean
  /** Its last request has come. */
  ended: boolean
  /** State for its next request; `undefined` before the first. */
  state: readonly Tensor[] | undefined
  cancelIdleTimer: (() => void) | undefined
  /** When it gives up waiting for a slot; `Infinity` while none of its requests has a time-out. */
  expiresMs: number
  cancelExpiry: (() => void) | undefined
}

export function newSequence(id: string): Sequence {
  return {
    id,
    queue: [],
    place: undefined,
    running: false,
    ended: false,
    state: undefined,
    cancelIdleTimer: undefined,
    expiresMs: Infinity,
    cancelExpiry: undefined,
  }
}

/** Slots of the instances, and the sequences that wait for one in the order in which they started. */
export class SequenceSlots {
  readonly #instances: (Sequence | undefined)[][]
  readonly #backlog = new Set<Sequence>()

  constructor(instances: number, perInstance: number) {
    this.#instances = Array.from({ length: instances }, () =>
      Array.from({ length: perInstance }, () => undefined),
    )
  }

  get backlog(): ReadonlySet<Sequence> {
    return this.#backlog
  }

  /** By slot. */
  of(instance: number): readonly (Sequence | undefined)[] {
    return this.#instances[instance] ?? []
  }

  /** Gives a sequence the first free slot of the instance that has most of them, or a place in the backlog. What has a slot has time. */
  place(sequence: Sequence): void {
    const free = this.#instances.map((slots) => slots.filter((slot) => slot === undefined).length)
    const most = Math.max(...free)
    if (most === 0) {
      this.#backlog.add(sequence)
      return
    }
    const instance = free.indexOf(most)
    const slot = this.#instances[instance]!.indexOf(undefined)
    this.#instances[instance]![slot] = sequence
    sequence.cancelExpiry?.()
    sequence.place = { instance, slot }
  }

  /** Frees the slot of a sequence, for the one that has waited longest. */
  release(sequence: Sequence): void {
    this.#backlog.delete(sequence)
    if (sequence.place === undefined) return
    const { instance, slot } = sequence.place
    sequence.place = undefined
    this.#instances[instance]![slot] = undefined
    const [next] = this.#backlog
    if (next === undefined) return
    this.#backlog.delete(next)
    this.place(next)
  }

  all(): readonly Sequence[] {
    const placed = this.#instances.flat().filter((sequence) => sequence !== undefined)
    return [...placed, ...this.#backlog]
  }
}
