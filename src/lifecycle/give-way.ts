import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'

/**
 * Lets other processes go first, for good, with all threads there are and will be.
 *
 * A nice value alone is void where Linux weighs sessions against each other (autogroup) and the process leads one of its own: measured, it
 * got as much of a core at nice 10 as its neighbour at 0. So the session is lowered by as much. And its threads are scheduled as idle
 * (`SCHED_IDLE`): a core that runs nothing else counts as free when a thread of another process wakes up, which is placed there at once.
 * With a low weight alone it would rather wait on a core with its like, though only the two of them matter.
 *
 * What the system does not offer is left out.
 *
 * @param nice - 1..19; only root may go up again.
 */
export function giveWay(nice: number): void {
  setPriority(Math.max(getPriority(), nice))
  lowerSession(nice)
  spawnSync('chrt', ['--all-tasks', '--idle', '--pid', '0', String(process.pid)])
}

function lowerSession(nice: number): void {
  try {
    writeFileSync('/proc/self/autogroup', String(nice))
  } catch {
    // A kernel without autogroup weighs processes by their nice values alone.
  }
}
