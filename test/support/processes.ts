import { readdirSync, readFileSync } from 'node:fs'

export type ProcessInfo = Readonly<{
  pid: number
  parent: number
  name: string
  state: string
  command: string
}>

/** What `/proc` says of one process; undefined when there is none. */
export function processInfo(pid: number): ProcessInfo | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const close = stat.lastIndexOf(')')
    const [state = '', parent = '0'] = stat.slice(close + 2).split(' ')
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
    return { pid, parent: Number(parent), name: stat.slice(stat.indexOf('(') + 1, close), state, command }
  } catch {
    return undefined
  }
}

/** Every process of the machine, zombies included. */
function processes(): ProcessInfo[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map((entry) => processInfo(Number(entry)))
    .filter((info) => info !== undefined)
}

/** Direct children of a process that are called `name`, zombies included. */
export function childrenOf(parent: number, name: string): ProcessInfo[] {
  return processes().filter((info) => info.parent === parent && info.name === name)
}

/**
 * The one child that is called `name`.
 *
 * @throws where there is none: a signal to process 0 is one to this test's own group, the runner included.
 */
export function childOf(parent: number, name: string): ProcessInfo {
  const [child] = childrenOf(parent, name)
  if (child === undefined) throw new Error(`process ${parent} has no child ${name}`)
  return child
}

/** Children, grandchildren and so on of a process. */
export function descendants(pid: number): ProcessInfo[] {
  const all = processes()
  const below = (parent: number): ProcessInfo[] =>
    all.filter((entry) => entry.parent === parent).flatMap((entry) => [entry, ...below(entry.pid)])
  return below(pid)
}

/** Whether the process runs; a zombie does not. */
export function alive(pid: number): boolean {
  const info = processInfo(pid)
  return info !== undefined && info.state !== 'Z'
}

/** File descriptors this process has open. */
export function openFiles(): number {
  return readdirSync('/proc/self/fd').length
}
