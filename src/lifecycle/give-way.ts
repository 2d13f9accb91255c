import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'

/**
 * Lets other processes go first, for good, with all threads there are and will be.
 *
 * A nice value alone is void where Linux weighs sessions against each other (autogroup) and the process leads one of its own: measured, it
 * got as much of a core at nice 10 as its neighbour at 0. So the session is lowered by as much. And one core is left alone, where there are
 * several: a thread that wakes up there need not wait until the scheduler takes the core from somebody.
 *
 * What the system does not offer is left out.
 *
 * @param nice - 1..19; only root may go up again.
 */
export function giveWay(nice: number): void {
  setPriority(Math.max(getPriority(), nice))
  lowerSession(nice)
  leaveFirstCore()
}

function lowerSession(nice: number): void {
  try {
    writeFileSync('/proc/self/autogroup', String(nice))
  } catch {
    // A kernel without autogroup weighs processes by their nice values alone.
  }
}

function leaveFirstCore(): void {
  const others = affinity().slice(1)
  if (others.length === 0) return
  spawnSync('taskset', ['--all-tasks', '--cpu-list', '--pid', others.join(','), String(process.pid)])
}

/** Cores this process may run on. Containers are often given some of them only. */
function affinity(): number[] {
  const { status, stdout } = spawnSync('taskset', ['--cpu-list', '--pid', String(process.pid)])
  const list = status === 0 ? (/: ([0-9,-]+)\s*$/.exec(stdout.toString())?.[1] ?? '') : ''
  return list.split(',').flatMap((range) => {
    const [first = NaN, last = first] = range.split('-').map(Number)
    return Number.isNaN(first) ? [] : Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })
}
