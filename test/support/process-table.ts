import { readdirSync, readFileSync } from 'node:fs'

export type ProcessInfo = Readonly<{ pid: number; parentPid: number; name: string; state: string }>

/** What `/proc` says of one process; undefined when there is none. */
export function processInfo(pid: number): ProcessInfo | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const close = stat.lastIndexOf(')')
    const [state = '', parentPid = ''] = stat.slice(close + 2).split(' ')
    return { pid, parentPid: Number(parentPid), name: stat.slice(stat.indexOf('(') + 1, close), state }
  } catch {
    return undefined
  }
}

/** Direct children of a process that are called `name`, zombies included. */
export function childrenOf(parentPid: number, name: string): readonly ProcessInfo[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map((entry) => processInfo(Number(entry)))
    .filter((info): info is ProcessInfo => info?.parentPid === parentPid && info.name === name)
}

/** File descriptors this process has open. */
export function openFiles(): number {
  return readdirSync('/proc/self/fd').length
}
