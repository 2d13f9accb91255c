import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const follow = ['-f', '--seccomp-bpf', '-qq', '-y', '-s', '300', '-e', 'signal=none']
const network = ['connect', 'sendto', 'sendmsg', 'sendmmsg']
const files = [
  ...['open', 'openat', 'creat', 'mkdir', 'mkdirat', 'mknod', 'mknodat', 'truncate'],
  ...['rename', 'renameat', 'renameat2', 'link', 'linkat', 'symlink', 'symlinkat'],
]
/** A call that this processor does not have is no mistake. */
const watched = [...network, ...files].map((call) => `?${call}`).join(',')

/** Whether strace is there and may trace. */
export const straceWorks =
  spawnSync('strace', [...follow, '-o', '/dev/null', '-e', 'trace=?open', 'true']).status === 0

/**
 * The start of a command that notes in `file` what the command behind it, and all that comes of it, asks of the system. It keeps its
 * process id, as the tracer stands aside.
 */
export function traced(file: string): readonly string[] {
  return ['strace', '-D', ...follow, '-o', file, '-e', `trace=${watched}`]
}

/** What a traced command reached for outside of itself, each thing once. */
export type Reached = Readonly<{
  /** `10.0.0.1:443`; `names` stands for the look-up of a name. */
  network: readonly string[]
  /** Paths that were made, or opened for writing. */
  written: readonly string[]
}>

export function reached(file: string): Reached {
  const network = new Set<string>()
  const written = new Set<string>()
  for (const line of wholeCalls(readFileSync(file, 'utf8'))) {
    const [, call = '', rest = ''] = /^\d+ +(\w+)\((.*)$/.exec(line) ?? []
    if (/^(connect|send)/.test(call)) {
      const address = addressOf(rest)
      if (address !== undefined) network.add(address)
    } else if (call !== '') {
      const path = writtenPath(call, rest)
      if (path !== undefined) written.add(path)
    }
  }
  return { network: [...network].sort(), written: [...written].sort() }
}

/** A call that another thread interrupted stands on two lines. */
function wholeCalls(text: string): string[] {
  const begun = new Map<string, string>()
  return text.split('\n').flatMap((line) => {
    const [, pid = '', head] = /^(\d+) .*?\b(\w+\(.*) <unfinished \.\.\.>$/.exec(line) ?? []
    if (head !== undefined) {
      begun.set(pid, `${pid} ${head}`)
      return []
    }
    const [, resumed = '', tail = ''] = /^(\d+) <\.\.\. \w+ resumed>(.*)$/.exec(line) ?? []
    return resumed === '' ? [line] : [`${begun.get(resumed) ?? `${resumed} `}${tail}`]
  })
}

/** undefined for what stays on this machine; asking its own service of names does not. */
function addressOf(rest: string): string | undefined {
  if (/sun_path="[^"]*(resolve|avahi)/.test(rest)) return 'names'
  const port = /sin6?_port=htons\((\d+)\)/.exec(rest)?.[1] ?? ''
  if (port === '53') return 'names'
  const address = /inet_addr\("([^"]+)"\)|inet_pton\(AF_INET6, "([^"]+)"/.exec(rest)
  const host = address?.[1] ?? address?.[2]
  if (host === undefined || /^(127\.|::1$|::ffff:127\.|0\.0\.0\.0$|::$)/.test(host)) return undefined
  return `${host}:${port}`
}

function writtenPath(call: string, rest: string): string | undefined {
  if (/ = -1 /.test(rest)) return undefined
  if (/^open/.test(call) && !/O_WRONLY|O_RDWR|O_CREAT/.test(rest)) return undefined
  const opened = / = \d+<([^>]*)>/.exec(rest)?.[1]
  // The last name is the one that is made: `rename(old, new)`, `symlink(target, link)`.
  const named = [...rest.matchAll(/(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"([^"]*)"/g)].at(-1)
  const [, folder = '', name = ''] = named ?? []
  const path = opened ?? (name.startsWith('/') ? name : `${folder}/${name}`)
  // Devices, and what the kernel shows of the process itself.
  return /^\/(dev|proc|sys)\/|^(pipe|socket|anon_inode):/.test(path) ? undefined : path
}
