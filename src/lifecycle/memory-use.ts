import { readFileSync, readlinkSync } from 'node:fs'
import { threadId } from 'node:worker_threads'

/** What the system knows of the memory of this process. */
export type MemoryUse = Readonly<{
  residentBytes(): number
  /**
   * Pages that a thread was the first to touch since it began, or the whole process; undefined where the system does not tell.
   *
   * @param thread - by {@link ownThread}.
   */
  pageFaults(thread: number | 'process'): number | undefined
}>

export const memoryUse: MemoryUse = {
  residentBytes: () => process.memoryUsage.rss(),
  pageFaults(thread) {
    try {
      return faultsIn(
        readFileSync(`/proc/self/${thread === 'process' ? '' : `task/${thread}/`}stat`, 'latin1'),
      )
    } catch {
      return undefined
    }
  },
}

/** The second field may hold anything, also blanks and brackets. */
function faultsIn(stat: string): number {
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[7])
}

/** Number of the thread that calls: the system's, or Node's where the system does not tell. */
export function ownThread(): number {
  try {
    return Number(readlinkSync('/proc/thread-self').split('/').at(-1))
  } catch {
    return threadId
  }
}
