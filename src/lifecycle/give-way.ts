import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
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
  lower(nice)
  scheduleAsIdle()
}

/**
 * Like {@link giveWay}, for a process that must go on while the cores are all busy. By themselves, threads scheduled as idle get nothing
 * then. In a session that is weighed as a whole they get its share, and elsewhere the nice value must do.
 *
 * @param nice - 1..19; only root may go up again.
 */
export function takeLess(nice: number): void {
  lower(nice)
  if (sessionIsWeighed()) scheduleAsIdle()
}

/**
 * Weighs the session of this process, where Linux weighs sessions. Unlike a process, it may be raised again without being root.
 *
 * @param nice - 0..19.
 * @returns Whether it is weighed so: no where sessions are not weighed, and seldom because the kernel takes ten such changes a second in all.
 */
export function weighSession(nice: number): boolean {
  try {
    writeFileSync('/proc/self/autogroup', String(nice))
    return true
  } catch {
    return false
  }
}

function lower(nice: number): void {
  setPriority(Math.max(getPriority(), nice))
  // A kernel without autogroup weighs processes by their nice values alone.
  weighSession(nice)
}

function scheduleAsIdle(): void {
  spawnSync('chrt', ['--all-tasks', '--idle', '--pid', '0', String(process.pid)])
}

/** Autogroup is on, and no control group comes before it: a container's own is the root of what it sees, but has a type. */
function sessionIsWeighed(): boolean {
  try {
    const groups = readFileSync('/proc/self/cgroup', 'utf8').trim().split('\n')
    return (
      readFileSync('/proc/sys/kernel/sched_autogroup_enabled', 'utf8').trim() === '1' &&
      groups
        .filter((line) => /^\d+:(?:|[^:]*\bcpu\b[^:]*):/.test(line))
        .every((line) => line.endsWith(':/')) &&
      !existsSync('/sys/fs/cgroup/cgroup.type')
    )
  } catch {
    return false
  }
}
