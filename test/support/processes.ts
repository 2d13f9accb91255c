import { readdirSync, readFileSync } from 'node:fs'

export type ProcessInfo = Readonly<{ pid: number; parent: number; state: string; command: string }>

/** Every process of the machine, from /proc. */
export function processes(): ProcessInfo[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
        const [state = '', parent = '0'] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
        const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ')
        return [{ pid: Number(name), parent: Number(parent), state, command }]
      } catch {
        return []
      }
    })
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
  return processes().some((entry) => entry.pid === pid && entry.state !== 'Z')
}
