import { readFileSync } from 'node:fs'

/** What the system says of a thread. */
export type ThreadUse = Readonly<{
  /** Processor time since it began. */
  cpuMs: number
  /** It computes, or would if it were given a core. */
  runs: boolean
}>

/** Of the kernel, whatever the machine. */
const ticksPerSecond = 100

/**
 * The main thread of a process, that of its event loop, by `/proc`: nothing in the process can make it look otherwise, nor do its other
 * threads count. `undefined` where there is no such process, or no `/proc`.
 */
export function mainThreadUse(pid: number): ThreadUse | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/task/${pid}/stat`, 'utf8')
    // The name before them may have spaces and brackets in it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [state, user, system] = [fields[0], fields[11], fields[12]]
    return { cpuMs: ((Number(user) + Number(system)) * 1_000) / ticksPerSecond, runs: state === 'R' }
  } catch {
    return undefined
  }
}
