import { hasCode } from '../errors.js'
import type { Log } from '../lifecycle/log.js'
import { atMost } from '../lifecycle/delay.js'
import { WorkerExitedError } from './errors.js'
import type { BatchResult, Execution } from './backend.js'
import type { BatchSizes, SizesInUse } from './batch-sizes.js'
import { watchRuns } from './instances/hung-watch.js'
import { replaceLater } from './instances/replacement.js'
import type { ShortRuns } from './instances/short-runs.js'
import { type GroupInstance, Slot } from './instances/slot.js'
import { EndCount, startAgain } from './instances/start-again.js'
import { startFew } from './instances/start-few.js'
import { startLater } from './instances/start-later.js'
import { runSize, WarmSizes } from './instances/warm-sizes.js'
import type { Promised } from './memory/room-for-others.js'
import type { MemoryAccount } from './memory/memory-account.js'
import type { InstanceTurns } from './rate-limit/rate-limiter.js'
import type { SchedulerClock } from './scheduler-clock.js'

export type InstanceGroupOptions<Job, Result> = Readonly<{
  /** Names the model, for people. */
  name: string
  /** How many instances there shall be; asked once the first one is up. */
  count: () => number
  /** Starts the instance of that number, warm. */
  start: (index: number, onBegan?: (thread: number) => void) => Promise<GroupInstance<Job, Result>>
  clock: SchedulerClock
  log: Log
  /** A run could start. */
  onIdle: () => void
  /** {@link InstanceGroup.sizes} are others. */
  onSizes?: () => void
  /** Sizes of batches do not run: they are left out. */
  onSizesLeftOut?: (sizes: BatchSizes, error: unknown) => void
  /** Longest a run may take. */
  runTimeoutMs: number
  /** A run has taken longer. Nothing in the process can end it; whoever owns the process must end that. */
  onHung: (instance: string, forMs: number) => void
  /** An instance ended, or could not be started again. */
  onEnd?: (error: unknown) => void
  /** Instances ended five times within a minute: no more are started. Called once. Absent: they are started again for ever. */
  onBroken?: (reason: string) => void
  /** The first one is up and so many others are to follow: what it promises them is kept as they come up. What it throws ends the start. */
  beforeOthers?: (others: number) => Promised
  /** The first one is up: the others may follow while it runs. One that does not start then is tried again, as one that ended is. */
  othersFollow?: () => boolean
  /** An instance whose last run took no longer takes one more job behind the one it runs. Absent: none does. */
  aheadUpToMs?: number
  /** Absent: nothing is done for runs that are very short. */
  shortRuns?: ShortRuns<Result>
  /** Every run waits for its turn, and none behind another; absent: none does. */
  turns?: InstanceTurns | undefined
  /** Is charged what starts and runs take; absent: nobody is. */
  memory?: MemoryAccount | undefined
  /** Another instance may take the place of one that keeps much memory. */
  isReplaceable?: boolean | undefined
}>

/** Longest that {@link InstanceGroup.prepare} may take: as long as an engine may load its model. */
const preparesAtMostMs = 120_000

/**
 * The instances of a model. One run at a time in each, and behind short ones a job more. One that ends is started again, ever more
 * slowly while it keeps ending; its runs fail and the others go on.
 */
export class InstanceGroup<Job, Result> {
  readonly #slots: Slot<Job, Result>[] = []
  readonly #stopped = new AbortController()
  readonly #starting = new Set<Promise<unknown>>()
  readonly #ends = new EndCount()
  /** Absent: instances take batches as they are. */
  #sizes: WarmSizes | undefined
  #stopWatch: (() => void) | undefined
  #ended: Promise<boolean> | undefined
  /** Resolves when those that follow the first are up, or have failed for now; they are started once {@link start} is over. */
  followed: Promise<void> = Promise.resolve()

  constructor(readonly options: InstanceGroupOptions<Job, Result>) {}

  /**
   * Starts the first instance, then the others, a few at a time; with `othersFollow` they are not waited for. Where a GPU runs the first and
   * has no room for another, that one is started once it has.
   *
   * @throws what a start throws, and `beforeOthers`; those that are up are ended again.
   */
  async start(): Promise<void> {
    const { count, beforeOthers, othersFollow, memory, isReplaceable, runTimeoutMs, clock, name, onHung } =
      this.options
    try {
      const first = this.#addSlot()
      await this.#startSlot(first)
      const others = Array.from({ length: count() - 1 }, () => this.#addSlot())
      if (othersFollow?.() === true) this.followed = startFew(others, (slot) => this.#follow(slot))
      else {
        const promised = beforeOthers?.(others.length)
        try {
          await startFew(others, (slot) => this.#startOther(slot).then(() => promised?.kept()))
        } finally {
          promised?.end()
        }
      }
    } catch (error) {
      await this.stop(5_000)
      throw error
    }
    if (this.#stopped.signal.aborted) return
    this.#stopWatch = watchRuns(this.#slots, {
      clock,
      runTimeoutMs,
      onHung: (index, forMs) => onHung(`${name}#${index}`, forMs),
    })
    if (isReplaceable === true) memory?.onKept((thread) => this.#replaceLater(memory, thread))
  }

  get size(): number {
    return this.#slots.length
  }

  /** Instances that are up. */
  get ready(): number {
    let ready = 0
    for (const slot of this.#slots) if (slot.isUp) ready += 1
    return ready
  }

  /** Instances without a run. */
  get idle(): number {
    let idle = 0
    for (const slot of this.#slots) if (slot.isIdle) idle += 1
    return idle
  }

  /** Instances that would take a job behind the one they run. */
  get ahead(): number {
    let ahead = 0
    for (const slot of this.#slots) if (this.#takesAhead(slot)) ahead += 1
    return ahead
  }

  isIdle(index: number): boolean {
    return this.#slots[index]?.isIdle === true
  }

  isUp(index: number): boolean {
    return this.#slots[index]?.isUp === true
  }

  /** Where instances take certain sizes of batches: how far they are with them. */
  get sizes(): SizesInUse | undefined {
    return this.#sizes?.inUse
  }

  /** From now on sizes that are to come are warmed, once the first instances are up: on one of them at a time, while the others serve. */
  warmSizes(): void {
    void this.followed.then(() => this.#sizes?.goOn())
  }

  /**
   * Runs a job on the instance of that number; without one on an idle instance, or behind the run that began first.
   *
   * @param onStart - called when it begins, after it waited for its turn; not if it fails before.
   * @throws what the instance throws, WorkerExitedError where none would take it
   */
  async run(job: Job, index?: number, onStart: () => void = nothing): Promise<Result> {
    const { name, clock, turns, shortRuns, onIdle } = this.options
    const slot = index === undefined ? this.#free() : this.#slots[index]
    if (slot?.instance === undefined) throw new WorkerExitedError(name, undefined)
    if (slot.running === 0) slot.sinceMs = turns === undefined ? clock.nowMs() : Infinity
    slot.running += 1
    const turn = turns?.take(slot.index)
    const release = turn === undefined ? nothing : await turn
    try {
      if (slot.sinceMs === Infinity) slot.sinceMs = clock.nowMs()
      onStart()
      const { instance } = slot
      // It may have ended, or the model with it, while the run waited for its turn.
      if (instance === undefined || (turn !== undefined && this.#stopped.signal.aborted))
        throw new WorkerExitedError(name, undefined)
      const run = this.#execute(instance, job)
      const result = await (shortRuns === undefined ? run : shortRuns.awaited(run))
      slot.failures = 0
      shortRuns?.ended(result)
      return result
    } finally {
      release()
      const nowMs = clock.nowMs()
      slot.running -= 1
      slot.lastRunMs = nowMs - slot.sinceMs
      slot.sinceMs = nowMs
      if (slot.isUp) queueMicrotask(onIdle)
    }
  }

  /**
   * Has an instance do what takes longer than a run may, such as a first run. Nothing is put behind it; it hangs where it takes minutes.
   *
   * @throws what the work throws, WorkerExitedError where it is not up
   */
  async prepare<T>(index: number, work: (instance: GroupInstance<Job, Result>) => Promise<T>): Promise<T> {
    const { name, clock, onHung, onIdle, runTimeoutMs, memory } = this.options
    const slot = this.#slots[index]
    const instance = slot?.instance
    if (slot === undefined || instance === undefined) throw new WorkerExitedError(name, undefined)
    const { thread } = instance
    const atMostMs = Math.max(preparesAtMostMs, runTimeoutMs)
    const cancel = clock.after(atMostMs, () => onHung(`${name}#${index}`, atMostMs))
    slot.isPreparing = true
    try {
      return await (memory === undefined || thread === undefined
        ? work(instance)
        : memory.prepare(thread, () => work(instance)))
    } finally {
      cancel()
      slot.isPreparing = false
      if (slot.isUp) queueMicrotask(onIdle)
    }
  }

  /**
   * Ends every instance after its run, waiting for at most `drainMs`. Idempotent, never rejects.
   *
   * @returns whether every instance ended in that time.
   */
  stop(drainMs: number): Promise<boolean> {
    this.#ended ??= this.#stop(drainMs)
    return this.#ended
  }

  async #stop(drainMs: number): Promise<boolean> {
    this.#stopped.abort()
    this.#stopWatch?.()
    this.options.turns?.close()
    const ending = this.#slots.map(async (slot) => {
      const { instance } = slot
      slot.instance = undefined
      return (await instance?.close(drainMs)) !== false
    })
    const all = Promise.all([Promise.all(ending), Promise.allSettled(this.#starting)])
    const ended = await atMost(drainMs, all)
    this.options.memory?.close()
    return ended !== undefined && ended[0].every(Boolean)
  }

  #execute(instance: GroupInstance<Job, Result>, job: Job): Promise<Result> {
    const { memory } = this.options
    const { thread } = instance
    return memory === undefined || thread === undefined
      ? instance.execute(job)
      : memory.run(thread, () => instance.execute(job))
  }

  #free(): Slot<Job, Result> | undefined {
    let behind: Slot<Job, Result> | undefined
    for (const slot of this.#slots) {
      if (slot.isIdle) return slot
      if (this.#takesAhead(slot) && (behind === undefined || slot.sinceMs < behind.sinceMs)) behind = slot
    }
    return behind
  }

  #takesAhead({ isUp, isPreparing, running, lastRunMs }: Slot<Job, Result>): boolean {
    if (!isUp || isPreparing || running !== 1) return false
    const { aheadUpToMs, shortRuns, turns } = this.options
    if (turns !== undefined) return false
    return (aheadUpToMs !== undefined && lastRunMs <= aheadUpToMs) || shortRuns?.takeAhead === true
  }

  #addSlot(): Slot<Job, Result> {
    const slot = new Slot<Job, Result>(this.#slots.length)
    this.#slots.push(slot)
    return slot
  }

  async #follow(slot: Slot<Job, Result>): Promise<void> {
    if (this.#stopped.signal.aborted) return
    try {
      await this.#startOther(slot)
      this.options.onIdle()
    } catch (error) {
      if (!this.#stopped.signal.aborted) this.#startAgain(slot, error)
    }
  }

  async #startOther(slot: Slot<Job, Result>): Promise<void> {
    try {
      await this.#startSlot(slot)
    } catch (error) {
      if (!hasCode(error, 'GANTRY_PROVIDER_FAILS')) throw error
      const { name, log, onIdle } = this.options
      void startLater(error, {
        instance: `${name}#${slot.index}`,
        log,
        stopped: this.#stopped.signal,
        start: () => this.#startSlot(slot),
        onIdle,
      })
    }
  }

  async #startSlot(slot: Slot<Job, Result>): Promise<void> {
    const starting = this.#startInstance(slot)
    this.#starting.add(starting)
    try {
      await starting
    } finally {
      this.#starting.delete(starting)
    }
  }

  async #startInstance(slot: Slot<Job, Result>): Promise<void> {
    const { start, memory } = this.options
    const warm = async (onBegan?: (thread: number) => void) =>
      this.#withSizes(slot.index, await start(slot.index, onBegan))
    const instance = await (memory === undefined ? warm() : memory.start(warm))
    if (this.#stopped.signal.aborted) {
      await instance.close()
      return
    }
    slot.instance = instance
    this.#sizes?.joins(slot.index)
    void instance.exited?.then((error) => this.#exited(slot, instance, error))
  }

  /** @throws why a size does not run that is in use; the instance is closed then */
  async #withSizes(index: number, instance: GroupInstance<Job, Result>): Promise<GroupInstance<Job, Result>> {
    const { sizes } = instance
    if (sizes === undefined) return instance
    const { onSizes = nothing, onSizesLeftOut = nothing } = this.options
    this.#sizes ??= new WarmSizes({
      sizes: sizes.all,
      warm: (at, size) => this.prepare(at, ({ sizes: own }) => runSize(own, size)),
      isUp: (at) => this.isUp(at),
      onChange: onSizes,
      onLeftOut: onSizesLeftOut,
    })
    try {
      await this.#sizes.started(index, sizes)
    } catch (error) {
      await instance.close()
      throw error
    }
    return instance
  }

  #exited(slot: Slot<Job, Result>, instance: GroupInstance<Job, Result>, error: Error): void {
    if (slot.instance !== instance) return
    slot.instance = undefined
    if (this.#stopped.signal.aborted) return
    const { memory } = this.options
    if (instance.thread !== undefined) memory?.forget(instance.thread)
    this.#startAgain(slot, error)
  }

  #startAgain(slot: Slot<Job, Result>, error: unknown): void {
    const { name, log, onIdle, onEnd } = this.options
    void startAgain(slot, error, {
      name,
      log,
      stopped: this.#stopped.signal,
      start: () => this.#startSlot(slot),
      onEnd: (reason) => {
        onEnd?.(reason)
        return !this.#givesUp(reason)
      },
      onIdle,
    })
  }

  #givesUp(error: unknown): boolean {
    const { name, log, onBroken, clock } = this.options
    const reason = onBroken === undefined ? undefined : this.#ends.add(error, clock.nowMs())
    if (reason === undefined) return false
    this.#stopped.abort()
    log.error({ model: name, err: error }, 'instances keep ending, model given up until it is loaded again')
    onBroken?.(reason)
    return true
  }

  #replaceLater(memory: MemoryAccount, thread: number): void {
    const slot = this.#slots.find(({ instance }) => instance?.thread === thread)
    if (slot === undefined) return
    const { name, clock, log } = this.options
    const start = (place: Slot<Job, Result>) => this.#startSlot(place)
    replaceLater(slot, thread, { name, clock, log, memory, stopped: this.#stopped.signal, start })
  }
}

/** The instances of a model that API clients ask. */
export type ModelInstances = InstanceGroup<readonly Execution[], BatchResult>

function nothing(): void {
  // Where there is nothing to wait for.
}
