import type { Log } from '../../lifecycle/log.js'
import type { MemoryAccount } from '../memory/memory-account.js'
import type { SchedulerClock } from '../scheduler-clock.js'
import type { Slot } from './slot.js'

export type ReplacementOptions<Job, Result> = Readonly<{
  /** Of the model, for people. */
  name: string
  clock: SchedulerClock
  log: Log
  memory: MemoryAccount
  /** Nothing is replaced any more. */
  stopped: AbortSignal
  /** Puts a new instance into the place. */
  start: (slot: Slot<Job, Result>) => Promise<unknown>
}>

/** From when an instance keeps much memory until another takes its place: longer each time, as its model may need that much. */
const backoff = { baseMs: 2_000, capMs: 600_000 }

/** Puts another instance in the place of one that keeps much memory, later: what it has kept of its runs goes with it. */
export function replaceLater<Job, Result>(
  slot: Slot<Job, Result>,
  thread: number,
  { name, clock, log, memory, stopped, start }: ReplacementOptions<Job, Result>,
): void {
  if (slot.isReplacing) return
  slot.isReplacing = true
  clock.after(Math.min(backoff.capMs, backoff.baseMs * 2 ** slot.replaced), () => {
    const old = slot.instance
    if (old?.thread !== thread || !memory.keepsMuch(thread) || stopped.aborted) {
      slot.isReplacing = false
      return
    }
    slot.replaced += 1
    log.info({ instance: `${name}#${slot.index}` }, 'instance keeps much memory, another takes its place')
    start(slot)
      .then(() => old.close())
      .catch((error: unknown) => log.warn({ model: name, err: error }, 'memory cannot be given back now'))
      .finally(() => {
        memory.forget(thread)
        slot.isReplacing = false
      })
  })
}
