import { closeSync, openSync, readFileSync, statSync } from 'node:fs'
import { getSystemErrorName } from 'node:util'
import { type ErrorCode, GantryError, hasCode } from '../errors.js'

/** What the system refused, whatever was asked of it. */
export type SystemLimit = Readonly<{
  /** Of the system: `EMFILE`. */
  code: string
  /** One clause for people, with the limit where it is known. */
  reason: string
  /** One sentence on what to do. */
  hint: string
}>

/** The soft and the hard limit of a process; undefined where there is none, or the system does not tell. */
export type Limits = Readonly<{ soft: number | undefined; hard: number | undefined }>

const names = { openFiles: 'Max open files', processes: 'Max processes' } as const

/** A limit of a process by `/proc`, of this one by default. A process without a descriptor left cannot read its own: nothing is known then. */
export function limitsOf(kind: keyof typeof names, pid: number | 'self' = 'self'): Limits {
  try {
    const line = readFileSync(`/proc/${pid}/limits`, 'utf8')
      .split('\n')
      .find((text) => text.startsWith(names[kind]))
    const [soft, hard] = (line ?? '').slice(names[kind].length).trim().split(/\s+/)
    return { soft: count(soft), hard: count(hard) }
  } catch {
    return { soft: undefined, hard: undefined }
  }
}

/** It stays what it was at the start, but for `prlimit`; and when it is told there may be no descriptor to read it with. */
const atStart = { openFiles: limitsOf('openFiles').soft, processes: limitsOf('processes').soft }

function count(text: string | undefined): number | undefined {
  return text === undefined || !/^\d+$/.test(text) ? undefined : Number(text)
}

type Kind = Readonly<{ reason: () => string; hint: string; words: RegExp }>

const raise = 'in the systemd unit, ulimits in Compose, or ulimit in the shell that starts Gantry.'

/** By code: what it means, what to do, and how other programs say it. */
const kinds: Readonly<Record<string, Kind>> = {
  EMFILE: {
    reason: () =>
      `no file descriptor is left for this process${told('limit of open files', limitsOf('openFiles').soft ?? atStart.openFiles)}`,
    hint: `Raise it: LimitNOFILE= ${raise}`,
    words: /Too many open files(?! in system)/i,
  },
  ENFILE: {
    reason: () => 'no file descriptor is left in the whole system',
    hint: 'Raise fs.file-max (sysctl), or end what holds so many files open.',
    words: /Too many open files in system/i,
  },
  EAGAIN: {
    reason: () =>
      `no further process or thread may be started${told('limit of processes', limitsOf('processes').soft ?? atStart.processes)}`,
    hint: `Raise it: LimitNPROC= and TasksMax= ${raise} In a container it may be its pids limit.`,
    // EAGAIN has a hundred meanings; with these words it is this one.
    words: /(execute|fork|thread|process|clone).*Resource temporarily unavailable/i,
  },
  ENOMEM: {
    reason: () => 'the system has no memory left for it',
    hint: 'Give the machine or container more memory, or lower inference.instances.',
    words: /Cannot allocate memory/i,
  },
  ENOSPC: {
    reason: () => 'the disk is full',
    hint: 'Make room on it (df -h, df -i); temporary files lie in TMPDIR.',
    words: /No space left on device/i,
  },
  EDQUOT: {
    reason: () => 'the disk quota of this user is used up',
    hint: 'Make room, or have the quota raised.',
    words: /Disk quota exceeded/i,
  },
  EROFS: {
    reason: () => 'the file system is read-only',
    hint: 'Mount it for writing, or name another folder; temporary files lie in TMPDIR.',
    words: /Read-only file system/i,
  },
  EIO: {
    reason: () => 'the disk or network share gave an error',
    hint: 'Look at the log of the system (dmesg) for the disk or the share under it.',
    words: /Input\/output error/i,
  },
  ESTALE: {
    reason: () => 'its network share was replaced or taken away',
    hint: 'Mount the share again.',
    words: /Stale (NFS )?file handle/i,
  },
  EACCES: {
    reason: () => 'this user has no permission for it',
    hint: 'Give the user that runs Gantry the right to it.',
    words: /Permission denied/i,
  },
  EPERM: {
    reason: () => 'the system does not permit it to this user',
    hint: 'Look at security profiles and capabilities of the service or container.',
    words: /Operation not permitted/i,
  },
  EADDRNOTAVAIL: {
    reason: () => 'no local port is left for a connection',
    hint: 'Widen net.ipv4.ip_local_port_range, or end what holds so many connections.',
    words: /Cannot assign requested address/i,
  },
  ENOBUFS: {
    reason: () => 'the system has no buffer space left for sockets',
    hint: 'Give the machine more memory, or end what holds so many connections.',
    words: /No buffer space available/i,
  },
}

function told(what: string, limit: number | undefined): string {
  return limit === undefined ? '' : ` (${what}: ${limit})`
}

/**
 * Whether an error, or what caused it, is a limit of the system that may be gone the next time, rather than a fault of what was asked
 * for; undefined when it is not.
 */
export function systemLimit(error: unknown): SystemLimit | undefined {
  let next = error
  for (let depth = 0; depth < 8 && next instanceof Error; depth += 1) {
    const code = codeOf(next)
    if (code !== undefined) return { ...saying(code, next), code }
    next = next.cause
  }
  return undefined
}

/** The same, from what another program said before it ended. */
export function systemLimitIn(text: string): SystemLimit | undefined {
  const byNumber = codeOfNumber(text)
  const found = Object.entries(kinds).find(([code, { words }]) => code === byNumber || words.test(text))
  if (found === undefined) return undefined
  const [code, { reason, hint }] = found
  return { code, reason: reason(), hint }
}

/** ONNX Runtime gives the number alone, in words of its own. */
function codeOfNumber(text: string): string | undefined {
  const number = /system error number (\d{1,3})\b/.exec(text)?.[1]
  return number === undefined ? undefined : getSystemErrorName(-Number(number))
}

/** What this process has run out of at this moment, where an error does not tell: a name, for instance, is just not found then. */
export function shortage(): SystemLimit | undefined {
  try {
    closeSync(openSync('/dev/null', 'r'))
    return undefined
  } catch (error) {
    return systemLimit(error)
  }
}

function codeOf(error: Error): string | undefined {
  const { code = '', syscall = '' } = error as NodeJS.ErrnoException
  // A worker thread that cannot be started has the code of the system in its words alone.
  const given = code === 'ERR_WORKER_INIT_FAILED' ? (/: (E[A-Z]+)$/.exec(error.message)?.[1] ?? '') : code
  if (!(given in kinds)) return undefined
  if (given === 'EAGAIN' && given === code && !/^(spawn|fork)/.test(syscall)) return undefined
  if (given === 'EADDRNOTAVAIL' && syscall !== 'connect') return undefined
  return given
}

function saying(code: string, error: NodeJS.ErrnoException): Pick<SystemLimit, 'reason' | 'hint'> {
  const { reason, hint } = kinds[code] ?? { reason: () => code, hint: '' }
  const subject = code === 'EMFILE' || code === 'ENFILE' ? undefined : (error.path ?? error.syscall)
  return { reason: subject === undefined ? reason() : `${reason()}: ${subject}`, hint }
}

/** Something could not be started, opened or reached because of a limit of the system. */
export class SystemLimitError extends GantryError {
  readonly code = 'GANTRY_ENVIRONMENT'
  readonly hint: string
  override readonly retryable = true
  constructor(what: string, limit: SystemLimit, cause?: unknown) {
    super(`${what}: ${limit.reason}`, { cause })
    this.name = 'SystemLimitError'
    this.hint = limit.hint
  }
}

/** Whether a limit of the system is behind an error, also one that arrived from another thread or process. */
export function isSystemLimit(error: unknown): boolean {
  return systemLimit(error) !== undefined || hasCode(error, 'GANTRY_ENVIRONMENT')
}

/** Whether what the machine lacks is behind an error: it may be gone the next time, and is no fault of what was asked for. */
export function isPassing(error: unknown): boolean {
  return isSystemLimit(error) || hasCode(error, 'GANTRY_PROVIDER_FAILS')
}

/** Whether an error of that code says what the machine lacks, such as a GPU that fails: whatever fails for it is tried again. */
export function mayPass(code: ErrorCode): boolean {
  return code === 'GANTRY_ENVIRONMENT' || code === 'GANTRY_PROVIDER_FAILS'
}

/**
 * Whether a path exists; unlike `existsSync` it does not take one that may not be looked at for one that is not there.
 *
 * @throws what the file system says
 */
export function isThere(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined
}

/** An error as it is, or by its true name where a limit of the system is behind it. */
export function byTrueName(what: string, thrown: unknown): Error {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown))
  if (error instanceof GantryError && error.code === 'GANTRY_ENVIRONMENT') return error
  const limit = systemLimit(error)
  return limit === undefined ? error : new SystemLimitError(what, limit, error)
}
