import { readFileSync } from 'node:fs'

/** Units of `/proc/PID/stat`; 100 on every Linux that Node runs on. */
const ticksPerSecond = 100

/** CPU seconds a process and its ended children have used; undefined once it is gone or where there is no `/proc`. */
export function processCpuSeconds(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name in brackets may hold spaces; fields are counted after it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const ticks = [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0)
    return Number.isFinite(ticks) ? ticks / ticksPerSecond : undefined
  } catch {
    return undefined
  }
}
