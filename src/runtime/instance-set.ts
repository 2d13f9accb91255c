import { WorkerExitedError } from '../repository/errors.js'
import { startAgain } from './start-again.js'
import { startFew } from './start-few.js'
import { isSystemLimit } from '../lifecycle/system-limit.js'
import type { SchedulerClock } from './stream-scheduler.js'
import { atMost } from '../lifecycle/delay.js'
import type { Log } from '../lifecycle/log.js'
import { WakefulLoop } from '../lifecycle/wakeful-loop.js'
import type { BackendInstance, BatchResult, Execution } from './backend.js'
import { roomForOthers } from './memory/room-for-others.js'
import type { MemoryAccount } from './memory/memory-account.js'
import type { InstanceTurns } from './rate-limit/rate-limiter.js'

export type InstanceSetOptions = Readonly<{
  /** For people. */
  name: string
  count: number
  start: (index: number, onBegan?: (thread: number) => void) => Promise<BackendInstance>
  clock: SchedulerClock
  log: Log
  /** A run could start. */
  onIdle: () => void
  /** A run has not ended for `hungAfterMs`. Nothing in the process can end it. */
  onHung: (reason: string) => void
  hungAfterMs: number
  /** Instances kept ending: no more are started. Called once. */
  onBroken: (reason: string) => void
  /** Every run waits for its turn; absent: none does. */
  turns?: InstanceTurns | undefined
  /** Is charged what starts and runs take; absent: nobody is. */
  memory?: MemoryAccount | undefined
  /** Another instance may take the place of one that keeps much memory. */
  isReplaceable?: boolean | undefined
}>

type Slot = {
  readonly index: number
  instance: BackendInstance | undefined
  running: number
  /** When the run in progress began. */
  sinceMs: number
  failures: number
  /** How often another instance took its place, to give back memory. */
  replaced: number
  isReplacing: boolean
}

/** From when an instance keeps much memory until another takes its place: longer each time, as its model may need that much. */
const replaceBackoff = { baseMs: 2_000, capMs: 600_000 }

/** So many ends, or failed starts, in that time are no accident. */
const mostEnds = 5
const endsWindowMs = 60_000

/** A run shorter than this is about as long as the way to its thread and back. */
const shortRunMs = 0.5

/** A run shorter than this has answered before a loop that went to sleep would be awake again. */
const instantRunMs = 0.1
/** A multiple of what such a run and the way to its thread and back take. */
const awakeMs = 0.25

/**
 * The instances of a model. One that ends is started again, ever more slowly while it keeps ending; its runs fail and the others
 * go on. After five ends within a minute it is given up.
 *
 * Where runs are very short, an instance is given the next one before it has answered the last, so that it does not stand idle
 * while the answer travels. Where they are over in an instant, the loop stays awake for their answers.
 */
export class InstanceSet {
  readonly #slots: Slot[] = []
  readonly #stopped = new AbortController()
  /** When instances ended, in the last minute. */
  #endsMs: number[] = []
  /** The last of them. */
  #lastEnd: unknown
  #meanRunMs: number | undefined
  readonly #wakeful = new WakefulLoop(awakeMs)
  #stopWatch: (() => void) | undefined

  constructor(readonly options: InstanceSetOptions) {}

  /**
   * Starts the first instance, then the others, a few at a time.
   *
   * @throws what a start throws, ModelConfigError where there is no memory for all of them; those that are up are ended again.
   */
  async start(): Promise<void> {
    const { name, count, memory } = this.options
    for (let index = 0; index < count; index++)
      this.#slots.push({
        index,
        instance: undefined,
        running: 0,
        sinceMs: 0,
        failures: 0,
        replaced: 0,
        isReplacing: false,
      })
    try {
      const [first, ...others] = this.#slots
      const room = roomForOthers(name, memory && (() => memory.takenNow()))
      if (first !== undefined) await this.#startSlot(first)
      const promised = room(others.length)
      try {
        await startFew(others, (slot) => this.#startSlot(slot).then(() => promised.kept()))
      } finally {
        promised.end()
      }
    } catch (error) {
      await this.close()
      throw error
    }
    this.#watch()
    if (this.options.isReplaceable === true)
      this.options.memory?.onKept((thread) => this.#replaceLater(thread))
  }

  get size(): number {
    return this.options.count
  }

  /** Instances that are up. */
  get ready(): number {
    return this.#slots.filter((slot) => slot.instance !== undefined).length
  }

  get running(): number {
    return this.#slots.reduce((sum, slot) => sum + slot.running, 0)
  }

  /** Runs that could start now. @param ahead - also those that would wait a moment behind a short run. */
  idle(ahead: boolean): number {
    const depth = ahead && this.options.turns === undefined && this.#runsAreBelow(shortRunMs) ? 2 : 1
    let idle = 0
    for (const { instance, running } of this.#slots)
      if (instance !== undefined) idle += Math.max(0, depth - running)
    return idle
  }

  isIdle(index: number): boolean {
    const slot = this.#slots[index]
    return slot?.instance !== undefined && slot.running === 0
  }

  /**
   * Runs a batch on the instance of that number, or on the one with the least to do.
   *
   * @param onStart - called when it begins, after it waited for its turn; not if it fails before.
   * @throws what the instance throws
   */
  async run(
    batch: readonly Execution[],
    index?: number,
    onStart: () => void = nothing,
  ): Promise<BatchResult> {
    const slot = index === undefined ? this.#leastBusy() : this.#slots[index]
    if (slot?.instance === undefined) throw new WorkerExitedError(this.options.name, undefined)
    if (slot.running === 0) slot.sinceMs = Infinity
    slot.running += 1
    const turn = this.options.turns?.take(slot.index)
    const release = turn === undefined ? nothing : await turn
    try {
      if (slot.sinceMs === Infinity) slot.sinceMs = this.options.clock.nowMs()
      onStart()
      const { instance } = slot
      // It may have ended, or the model with it, while the run waited for its turn.
      if (instance === undefined || (turn !== undefined && this.#stopped.signal.aborted))
        throw new WorkerExitedError(this.options.name, undefined)
      const result = await this.#execute(instance, batch)
      slot.failures = 0
      this.#remember(result.times.computeInferNs / 1e6)
      return result
    } finally {
      release()
      slot.running -= 1
      slot.sinceMs = this.options.clock.nowMs()
      if (slot.instance !== undefined) queueMicrotask(this.options.onIdle)
    }
  }

  /** Ends every instance after its run, waiting for at most `forMs`. Idempotent, never rejects. */
  async close(forMs = 5_000): Promise<void> {
    this.#stopped.abort()
    this.#stopWatch?.()
    this.options.turns?.close()
    const closing = this.#slots.map(async (slot) => {
      await slot.instance?.close()
      slot.instance = undefined
    })
    await atMost(forMs, Promise.all(closing))
    this.options.memory?.close()
  }

  async #execute(instance: BackendInstance, batch: readonly Execution[]): Promise<BatchResult> {
    const { memory } = this.options
    const execute = () => instance.execute(batch)
    const { thread } = instance
    const result = memory === undefined || thread === undefined ? execute() : memory.run(thread, execute)
    if (!this.#runsAreBelow(instantRunMs)) return result
    this.#wakeful.begin()
    try {
      return await result
    } finally {
      this.#wakeful.end()
    }
  }

  #leastBusy(): Slot | undefined {
    let best: Slot | undefined
    for (const slot of this.#slots)
      if (slot.instance !== undefined && (best === undefined || slot.running < best.running)) best = slot
    return best
  }

  #runsAreBelow(ms: number): boolean {
    return this.#meanRunMs !== undefined && this.#meanRunMs < ms
  }

  #remember(runMs: number): void {
    this.#meanRunMs = this.#meanRunMs === undefined ? runMs : this.#meanRunMs * 0.9 + runMs * 0.1
  }

  async #startSlot(slot: Slot): Promise<void> {
    const { start, memory } = this.options
    const instance = await (memory === undefined
      ? start(slot.index)
      : memory.start((onBegan) => start(slot.index, onBegan)))
    if (this.#stopped.signal.aborted) {
      await instance.close()
      return
    }
    slot.instance = instance
    void instance.exited?.then((error) => this.#exited(slot, instance, error))
  }

  /** What an instance has kept of its runs goes with it. */
  #replaceLater(thread: number): void {
    const slot = this.#slots.find(({ instance }) => instance?.thread === thread)
    if (slot === undefined || slot.isReplacing) return
    slot.isReplacing = true
    const { clock, memory, name, log } = this.options
    const waitMs = Math.min(replaceBackoff.capMs, replaceBackoff.baseMs * 2 ** slot.replaced)
    clock.after(waitMs, () => {
      const old = slot.instance
      const isWanted =
        old?.thread === thread && memory?.keepsMuch(thread) === true && !this.#stopped.signal.aborted
      if (!isWanted) {
        slot.isReplacing = false
        return
      }
      slot.replaced += 1
      log.info({ instance: `${name}#${slot.index}` }, 'instance keeps much memory, another takes its place')
      this.#startSlot(slot)
        .then(() => old.close())
        .catch((error: unknown) => log.warn({ model: name, err: error }, 'memory cannot be given back now'))
        .finally(() => {
          memory.forget(thread)
          slot.isReplacing = false
        })
    })
  }

  #exited(slot: Slot, instance: BackendInstance, error: Error): void {
    if (slot.instance !== instance) return
    slot.instance = undefined
    if (this.#stopped.signal.aborted) return
    const { name, log, onIdle, memory } = this.options
    if (instance.thread !== undefined) memory?.forget(instance.thread)
    void startAgain(slot, error, {
      name,
      log,
      stopped: this.#stopped.signal,
      start: () => this.#startSlot(slot),
      onEnd: (reason) => {
        // That it cannot be started for want of something is no fault of the model.
        if (isSystemLimit(reason) || this.#isCounted(reason) || !this.#keepsEnding()) return true
        this.#giveUp(reason)
        return false
      },
      onIdle,
    })
  }

  /** Whether instances of the same thread ended with it. */
  #isCounted(reason: unknown): boolean {
    const isCounted = reason === this.#lastEnd
    this.#lastEnd = reason
    return isCounted
  }

  /** Counts an end. */
  #keepsEnding(): boolean {
    const nowMs = this.options.clock.nowMs()
    this.#endsMs = [...this.#endsMs.filter((endMs) => nowMs - endMs < endsWindowMs), nowMs]
    return this.#endsMs.length >= mostEnds
  }

  #giveUp(error: unknown): void {
    const { name, log, onBroken } = this.options
    this.#stopped.abort()
    const reason = `its instances ended ${mostEnds} times within ${endsWindowMs / 1e3} s: ${error instanceof Error ? error.message : String(error)}`
    log.error({ model: name, err: error }, 'instances keep ending, model given up until it is loaded again')
    onBroken(reason)
  }

  #watch(): void {
    const { clock, hungAfterMs, name, onHung } = this.options
    this.#stopWatch = clock.after(hungAfterMs / 4, () => {
      const nowMs = clock.nowMs()
      const hung = this.#slots.find((slot) => slot.running > 0 && nowMs - slot.sinceMs >= hungAfterMs)
      if (hung !== undefined)
        onHung(
          `instance ${name}#${hung.index} has not ended a run for ${Math.round(nowMs - hung.sinceMs)} ms`,
        )
      else this.#watch()
    })
  }
}

function nothing(): void {
  // Where there is nothing to wait for.
}
