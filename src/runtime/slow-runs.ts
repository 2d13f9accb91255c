import { nowMs } from '../lifecycle/clock.js'
import type { Log } from '../lifecycle/log.js'
import { waitingShare } from '../lifecycle/pressure.js'
import type { RunShapes } from './statistics.js'

/** A run that took ten times the median of its size, or more. */
export type SlowRun = Readonly<{
  /** In all its requests together. */
  items: number
  ms: number
  /** Of the runs of that size before it. */
  medianMs: number
  shapes: RunShapes | undefined
}>

const tellEveryMs = 60_000
/** Shares of ten seconds in which something waited, in percent, from which that explains a slow run. */
const busyFrom = { memory: 5, cpu: 20 } as const

/**
 * Tells of the slow runs of a model, once a minute, with what is known of why.
 *
 * @param onGpu - whether its instances run on a GPU, asked when it is told.
 */
export function slowRunTeller(
  model: string,
  onGpu: () => boolean,
  log: Log,
  clock: () => number = nowMs,
): (run: SlowRun) => void {
  let toldMs = -Infinity
  let runs = 0
  return (run) => {
    runs += 1
    if (clock() - toldMs < tellEveryMs) return
    toldMs = clock()
    const { items, ms, medianMs } = run
    const figures = { items, ms: Math.round(ms), medianMs: Math.round(medianMs * 100) / 100 }
    log.warn(
      { model, ...figures, slowRuns: runs, cause: causeOf(run, onGpu()) },
      'a run took more than ten times the median of its size',
    )
    runs = 0
  }
}

/** What is known of why a run was slow, most certain first. @param waiting - see {@link waitingShare}. */
export function causeOf({ shapes }: SlowRun, onGpu: boolean, waiting = waitingShare): string {
  if (shapes === 'first') return 'first run of its session with these shapes'
  if (shapes === 'changed' && onGpu)
    return 'other shapes than those of the run before, for which a GPU plans anew'
  const memory = waiting('memory') ?? 0
  if (memory >= busyFrom.memory) return `the machine is short of memory: ${waited(memory, 'it')}`
  const cpu = waiting('cpu') ?? 0
  if (cpu >= busyFrom.cpu) return `the processors are busy: ${waited(cpu, 'one')}`
  return onGpu
    ? 'not known: others may use the card, or it is slowed down by heat or power; `nvidia-smi -q -d PERFORMANCE,UTILIZATION` tells'
    : 'not known'
}

function waited(percent: number, what: string): string {
  return `something waited for ${what} in ${Math.round(percent)} % of the last 10 s`
}
