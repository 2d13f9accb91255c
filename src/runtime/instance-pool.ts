import { nowMs } from '../lifecycle/clock.js'
import type { Log } from '../lifecycle/log.js'
import { RunHungError, WorkerExitedError } from '../repository/errors.js'
import { Instance } from './instance.js'
import { startAgain } from './start-again.js'
import { startFew } from './start-few.js'

export type PoolOptions<Load, Ready> = Readonly<{
  /** Names threads, for people. */
  name: string
  /** Path of the compiled worker. */
  entry: string
  /** What an instance is loaded with; those after the first know what became of it. */
  load: (first: Ready | undefined) => Load
  /** How many instances there shall be, once it is known where the first one runs. */
  count: (first: Ready) => number
  log: Log
  /** An instance ended, or could not be started again. */
  onExit: (error: unknown) => void
  /** A run could start. */
  onIdle: () => void
  /** An instance whose last run took no longer takes one more job behind the one it runs. */
  aheadUpToMs: number
  /** Longest a run may take. */
  runTimeoutMs: number
  /** A run has taken longer. It cannot be ended; whoever owns the process must end that. */
  onHung: (error: RunHungError) => void
}>

type Slot<Load, Ready, Job, Result> = {
  readonly index: number
  instance: Instance<Load, Ready, Job, Result> | undefined
  ready: boolean
  failures: number
  /** Given to it and not ended: what it runs, and what waits in its thread. */
  jobs: number
  /** Of what it runs. */
  beganMs: number
  lastRunMs: number
  watch: NodeJS.Timeout | undefined
}

/**
 * A fixed number of instances of one model. One run at a time in each, and behind short ones a job more that waits in the
 * thread; an instance that ends is started again, ever more slowly while it keeps ending.
 */
export class InstancePool<Load, Ready, Job, Result> {
  readonly #slots: Slot<Load, Ready, Job, Result>[] = []
  readonly #stopped = new AbortController()
  #first: Ready | undefined

  constructor(readonly options: PoolOptions<Load, Ready>) {}

  /** Instances without a run. */
  get idle(): number {
    return this.#slots.filter(isIdle).length
  }

  /** Instances that would take a job behind the one they run. */
  get ahead(): number {
    return this.#slots.filter((slot) => this.#takesAhead(slot)).length
  }

  /**
   * Starts the first instance, then the others, a few at a time.
   *
   * @throws what the first load throws; everything started is ended again.
   */
  async start(): Promise<Ready> {
    try {
      const first = await this.#startSlot(this.#addSlot())
      this.#first = first
      const others = Array.from({ length: this.options.count(first) - 1 }, () => this.#addSlot())
      await startFew(others, (slot) => this.#startSlot(slot))
      return first
    } catch (error) {
      await this.stop(1_000)
      throw error
    }
  }

  /**
   * Runs a job on an idle instance, or behind the run that began first.
   *
   * @param transfer - buffers of the job; they are gone from this thread, whatever becomes of the run.
   * @throws InferenceFailedError, WorkerExitedError
   */
  async run(job: Job, transfer: readonly ArrayBuffer[]): Promise<Result> {
    const slot = this.#slots.find(isIdle) ?? earliest(this.#slots.filter((busy) => this.#takesAhead(busy)))
    if (slot?.instance === undefined) throw new WorkerExitedError(this.options.name, undefined)
    slot.jobs += 1
    if (slot.jobs === 1) this.#began(slot, slot.instance)
    try {
      const result = await slot.instance.run(job, transfer)
      slot.failures = 0
      return result
    } finally {
      slot.jobs -= 1
      slot.lastRunMs = nowMs() - slot.beganMs
      clearTimeout(slot.watch)
      if (slot.jobs > 0) this.#began(slot, slot.instance)
      if (slot.ready) queueMicrotask(this.options.onIdle)
    }
  }

  /** Idempotent, never rejects. @returns whether every instance ended within `forMs`. */
  async stop(forMs: number): Promise<boolean> {
    this.#stopped.abort()
    const ended = await Promise.all(
      this.#slots.map(async (slot) => {
        slot.ready = false
        return slot.instance === undefined || (await slot.instance.stop(forMs))
      }),
    )
    return ended.every(Boolean)
  }

  #takesAhead({ ready, jobs, lastRunMs }: Slot<Load, Ready, Job, Result>): boolean {
    return ready && jobs === 1 && lastRunMs <= this.options.aheadUpToMs
  }

  #began(slot: Slot<Load, Ready, Job, Result>, { name }: Instance<Load, Ready, Job, Result>): void {
    const { runTimeoutMs, onHung } = this.options
    slot.beganMs = nowMs()
    slot.watch = setTimeout(() => onHung(new RunHungError(name, runTimeoutMs)), runTimeoutMs)
  }

  #addSlot(): Slot<Load, Ready, Job, Result> {
    const slot = {
      index: this.#slots.length,
      instance: undefined,
      ready: false,
      failures: 0,
      jobs: 0,
      beganMs: 0,
      lastRunMs: Number.POSITIVE_INFINITY,
      watch: undefined,
    }
    this.#slots.push(slot)
    return slot
  }

  async #startSlot(slot: Slot<Load, Ready, Job, Result>): Promise<Ready> {
    const instance = new Instance<Load, Ready, Job, Result>(
      `${this.options.name}#${slot.index}`,
      this.options.entry,
      (error) => this.#exited(slot, error),
    )
    slot.instance = instance
    try {
      const ready = await instance.load(this.options.load(this.#first))
      slot.ready = !this.#stopped.signal.aborted
      return ready
    } catch (error) {
      await instance.stop(1_000)
      throw error
    }
  }

  #exited(slot: Slot<Load, Ready, Job, Result>, error: unknown): void {
    const wasReady = slot.ready
    slot.ready = false
    if (this.#stopped.signal.aborted || !wasReady) return
    const { name, log, onExit, onIdle } = this.options
    void startAgain(slot, error, {
      name,
      log,
      stopped: this.#stopped.signal,
      start: () => this.#startSlot(slot),
      onEnd: (reason) => {
        onExit(reason)
        return true
      },
      onIdle,
    })
  }
}

function isIdle({ ready, jobs }: Readonly<{ ready: boolean; jobs: number }>): boolean {
  return ready && jobs === 0
}

/** The one whose run began first. */
function earliest<S extends Readonly<{ beganMs: number }>>(slots: readonly S[]): S | undefined {
  return slots.reduce<S | undefined>(
    (first, slot) => (first === undefined || slot.beganMs < first.beganMs ? slot : first),
    undefined,
  )
}
