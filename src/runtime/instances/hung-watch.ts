import type { SchedulerClock } from '../scheduler-clock.js'

/** When the run of an instance began, if it runs. */
type Watched = Readonly<{ index: number; running: number; sinceMs: number }>

export type HungWatchOptions = Readonly<{
  clock: SchedulerClock
  /** Longest a run may take. */
  runTimeoutMs: number
  /** A run has not ended for `forMs`. Nothing is watched after that: only the end of the process ends such a run. */
  onHung: (index: number, forMs: number) => void
}>

/** Of the time a run may take: so often is looked, for less than a timer for each run costs. */
const lookShare = 1 / 4

/** Looks now and then whether a run hangs. @returns ends the watch. */
export function watchRuns(slots: readonly Watched[], options: HungWatchOptions): () => void {
  const { clock, runTimeoutMs, onHung } = options
  let cancel: () => void
  const look = () => {
    const nowMs = clock.nowMs()
    const hung = slots.find(({ running, sinceMs }) => running > 0 && nowMs - sinceMs >= runTimeoutMs)
    if (hung === undefined) cancel = clock.after(runTimeoutMs * lookShare, look)
    else onHung(hung.index, Math.round(nowMs - hung.sinceMs))
  }
  cancel = clock.after(runTimeoutMs * lookShare, look)
  return () => cancel()
}
