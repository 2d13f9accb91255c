import { ServingError } from '../../tensors/serving-error.js'

/** What works for a model: the thread of an instance, by its number, or those of instances that start, before their numbers are known. */
export type Worker = number | 'start'

/** What an account needs of all of them. */
export type AccountHost = Readonly<{
  /** Work is about to begin. */
  begins(): void
  /** It has begun. */
  began(worker: Worker): void
  /** A thread that is new has told its number: all that it touched is the model's. */
  isNew(thread: number): void
  /** A run ended. */
  ended(): void
  /** Brings all accounts up to date. */
  look(): void
  forgot(worker: Worker): void
  closed(): void
}>

/** Of the limit: what an instance has kept of its runs beyond this is given back, by another one in its place. */
const keptShare = 0.25

/** What one model has taken of memory, by the threads of its instances. */
export class MemoryAccount {
  readonly #taken = new Map<Worker, number>()
  /** Work under way, by thread. */
  readonly #working = new Map<Worker, number>()
  /** Threads that worked since the last look. */
  #active = new Set<Worker>()
  readonly #refusals = new Set<(error: Error) => void>()
  #starts = 0
  #isLoaded = false
  #onKept: ((thread: number) => void) | undefined

  constructor(
    readonly model: string,
    readonly limitBytes: number,
    readonly host: AccountHost,
  ) {}

  get takenBytes(): number {
    let sum = 0
    for (const bytes of this.#taken.values()) sum += bytes
    return sum
  }

  /** While instances start each may take as much as the trial run of a model. */
  get allowedBytes(): number {
    return this.limitBytes * Math.max(1, this.#starts + (this.#isLoaded ? 1 : 0))
  }

  /** Up to this moment. */
  takenNow(): number {
    this.host.look()
    return this.takenBytes
  }

  /** Work is under way. */
  get isBusy(): boolean {
    return this.#working.size > 0
  }

  /** It is, or was since the last look. */
  get isActive(): boolean {
    return this.#active.size > 0
  }

  /** What that work was on. */
  get active(): ReadonlySet<Worker> {
    return this.#active
  }

  /** Charges work of an instance. @throws what the work throws; ServingError once the model has taken more than it may. */
  run<T>(thread: number, work: () => Promise<T>): Promise<T> {
    return this.#work(
      () => thread,
      work,
      () => this.host.ended(),
    )
  }

  /** Charges the start of an instance. @param work - calls with the number of its thread as soon as that is known. */
  async start<T>(work: (onBegan: (thread: number) => void) => Promise<T>): Promise<T> {
    this.#starts += 1
    const before = this.#taken.get('start') ?? 0
    let worker: Worker = 'start'
    try {
      return await this.#work(
        () => worker,
        () =>
          work((thread) => {
            this.#moved(worker, thread)
            worker = thread
          }),
        () => undefined,
      )
    } finally {
      // What an instance is loaded with is what the model needs.
      if (this.#isLoaded) {
        this.host.look()
        this.#taken.set('start', Math.min(before, this.#taken.get('start') ?? 0))
        if (worker !== 'start') this.#taken.delete(worker)
        this.#starts -= 1
      }
    }
  }

  /** Charges what an instance needs beside its load, such as the first run of a size: it is no part of what its runs take. */
  async prepare<T>(thread: number, work: () => Promise<T>): Promise<T> {
    this.#starts += 1
    const before = this.#taken.get(thread) ?? 0
    try {
      return await this.run(thread, work)
    } finally {
      this.host.look()
      this.#taken.set(thread, Math.min(before, this.#taken.get(thread) ?? 0))
      this.#starts -= 1
    }
  }

  /** From here on it is charged what it takes above what it has. */
  loaded(): void {
    this.host.look()
    this.#taken.clear()
    this.#isLoaded = true
    this.#starts = 0
  }

  /** Calls with the thread of an instance that keeps much, at each look at which it does nothing. */
  onKept(call: (thread: number) => void): void {
    this.#onKept = call
  }

  keepsMuch(thread: number): boolean {
    return (this.#taken.get(thread) ?? 0) > this.limitBytes * keptShare
  }

  /** The instance is gone, and what it had with it. */
  forget(thread: number): void {
    this.host.look()
    this.#taken.delete(thread)
    this.host.forgot(thread)
  }

  close(): void {
    this.host.closed()
  }

  charge(worker: Worker, bytes: number): void {
    this.#taken.set(worker, (this.#taken.get(worker) ?? 0) + bytes)
  }

  /** @param left - what is left of each byte. */
  shrink(left: number): void {
    for (const [thread, bytes] of this.#taken) this.#taken.set(thread, bytes * left)
  }

  looked(): void {
    this.#active = new Set(this.#working.keys())
    if (this.#onKept === undefined) return
    for (const thread of this.#taken.keys())
      if (thread !== 'start' && !this.#working.has(thread) && this.keepsMuch(thread)) this.#onKept(thread)
  }

  refuse(reason: string): void {
    const error = new ServingError('UNAVAILABLE', `model '${this.model}' is unavailable: ${reason}`)
    for (const refuse of this.#refusals) refuse(error)
  }

  #moved(from: Worker, thread: number): void {
    this.#leaves(from)
    this.#enters(thread)
    this.host.isNew(thread)
  }

  #enters(worker: Worker): void {
    this.#active.add(worker)
    this.#working.set(worker, (this.#working.get(worker) ?? 0) + 1)
  }

  #leaves(worker: Worker): void {
    const left = (this.#working.get(worker) ?? 1) - 1
    if (left === 0) this.#working.delete(worker)
    else this.#working.set(worker, left)
  }

  /** @param worker - who is at it; another may be at its end. */
  #work<T>(worker: () => Worker, work: () => Promise<T>, ended: () => void): Promise<T> {
    this.host.begins()
    this.#enters(worker())
    const working = work()
    this.host.began(worker())
    return new Promise<T>((resolve, reject) => {
      this.#refusals.add(reject)
      const done = (): void => {
        this.#refusals.delete(reject)
        this.#leaves(worker())
        ended()
      }
      working.then(
        (result) => {
          done()
          resolve(result)
        },
        (error: Error) => {
          done()
          reject(error)
        },
      )
    })
  }
}
