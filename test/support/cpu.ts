import { readdirSync, readFileSync } from 'node:fs'
import { descendants } from './processes.js'

/** Linux counts process time in ticks of a hundredth of a second. */
const ticksPerSecond = 100

/** CPU seconds a process has used so far, its ended and waited-for children included. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [user = 0, system = 0, childUser = 0, childSystem = 0] = fields.slice(11, 15).map(Number)
  return (user + system + childUser + childSystem) / ticksPerSecond
}

/** CPU seconds of a process and everything below it. */
export function treeCpuSeconds(pid: number): number {
  return [pid, ...descendants(pid).map((entry) => entry.pid)].reduce((sum, each) => {
    try {
      return sum + cpuSeconds(each)
    } catch {
      return sum
    }
  }, 0)
}

/** CPU milliseconds of the threads a process has now, finer than its ticks; of one that has gone, none. */
export function threadCpuMs(pid: number): number {
  try {
    const tasks = readdirSync(`/proc/${pid}/task`)
    const each = tasks.map((task) =>
      Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]),
    )
    return each.reduce((sum, ns) => sum + ns, 0) / 1e6
  } catch {
    return 0
  }
}

/** The same of a process and everything below it. */
export function treeThreadCpuMs(pid: number): number {
  return [pid, ...descendants(pid).map((entry) => entry.pid)].reduce(
    (sum, each) => sum + threadCpuMs(each),
    0,
  )
}

/** Resident bytes of a process. */
export function residentBytes(pid: number): number {
  const kib = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(kib ?? 0) * 1024
}

/** Seconds of all cores together that the host of this virtual machine gave to others while they were wanted here (`st` of `vmstat`), since boot. */
export function stolenSeconds(): number {
  const [total = ''] = readFileSync('/proc/stat', 'utf8').split('\n')
  return Number(total.split(/\s+/)[8] ?? 0) / ticksPerSecond
}
