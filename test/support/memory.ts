import { readFileSync } from 'node:fs'
import { descendants } from './processes.js'

/** Memory of a process, shared pages divided among those that share them; of one that has gone, none. */
export function ownBytes(pid: number): number {
  try {
    const kib = /^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]
    return Number(kib ?? 0) * 1024
  } catch {
    return 0
  }
}

/** That of a process and everything below it. */
export function treeBytes(pid: number): number {
  return [pid, ...descendants(pid).map((entry) => entry.pid)].reduce((sum, each) => sum + ownBytes(each), 0)
}
