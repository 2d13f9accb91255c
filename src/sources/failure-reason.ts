import { wallMs } from '../lifecycle/clock.js'
import { shortage, systemLimit, systemLimitIn, type SystemLimit } from '../lifecycle/system-limit.js'
import { parseDecoderLine } from './decoder-log.js'
import type { ProcessEnd } from './decoder-process.js'

/** Why a camera cannot be reached, and what to look at; one clause each, as ffmpeg and the gates both tell it. */
export const networkFailures = {
  refused: 'connection refused: check host and port, and that the camera is on',
  timedOut: 'connection timed out: check host, port and firewalls',
  unknownHost: "host name not found: check its spelling and this machine's DNS",
  unreachable: 'host unreachable: check the address and the way to its network',
  reset: 'connection reset: the camera or something on the way ended it',
  noTls: 'no encrypted connection: check that the port is the one for rtsps or https',
} as const

/** Why a decoder ended, from what it said. */
export type Failure = Readonly<{
  /** One clause for people, without credentials. */
  reason: string
  /**
   * `never`: trying again cannot help until the camera is changed; `slow`: only at the longest interval; `login`: ever more rarely, because
   * cameras lock accounts after a few refused logins; `normal`: with back-off.
   */
  retry: 'normal' | 'slow' | 'login' | 'never'
  /** What to do about a limit of the system; set where that is the cause, which somebody must hear of who runs the machine. */
  systemHint?: string
  /** The camera asks for that much time until the next try. */
  retryAfterMs?: number
}>

export const ffmpegMissing: Failure = {
  reason: 'ffmpeg is not installed: apt-get install ffmpeg',
  retry: 'never',
}

const table: readonly (readonly [RegExp, Failure])[] = [
  [/failed to execute ffmpeg: No such file/, ffmpegMissing],
  [/\b401\b|authorization failed/i, { reason: 'credentials refused (401)', retry: 'slow' }],
  [/\b403\b.*forbidden|\b403\b/i, { reason: 'access forbidden (403)', retry: 'slow' }],
  [/\b404\b/, { reason: 'stream not found on the camera (404)', retry: 'normal' }],
  [/\b(453|503)\b/, { reason: 'the camera has no session left (busy)', retry: 'normal' }],
  [
    /\b461\b|Unsupported Transport/i,
    { reason: 'transport refused: set transport to the other of tcp and udp', retry: 'normal' },
  ],
  [/5XX Server Error|\b50[0-9]\b/, { reason: 'the server answered with an error (5xx)', retry: 'normal' }],
  [/Connection refused/i, { reason: networkFailures.refused, retry: 'normal' }],
  [/timed out/i, { reason: networkFailures.timedOut, retry: 'normal' }],
  [
    /Failed to resolve|Name or service not known|Temporary failure in name resolution/i,
    { reason: networkFailures.unknownHost, retry: 'normal' },
  ],
  [/No route to host|Network is unreachable/i, { reason: networkFailures.unreachable, retry: 'normal' }],
  [/Connection reset/i, { reason: networkFailures.reset, retry: 'normal' }],
  [/matches no streams|does not contain any stream/i, { reason: 'no video in the stream', retry: 'normal' }],
  [/File ended prematurely|partial file$/, { reason: 'it ends early', retry: 'normal' }],
  [
    /decode error rate .* exceeds maximum/i,
    { reason: 'most of its pictures cannot be decoded', retry: 'slow' },
  ],
  [
    /Decoder \(codec|Unknown decoder|no decoder|Decoder not found/i,
    { reason: 'video codec not supported by this ffmpeg', retry: 'slow' },
  ],
  [/No such file or directory/i, { reason: 'file not found', retry: 'never' }],
  [/Permission denied/i, { reason: 'file may not be read by this user', retry: 'normal' }],
  [
    /not on whitelist|Protocol not found/i,
    { reason: 'the stream refers to a protocol that is not allowed', retry: 'slow' },
  ],
  [
    /Option .* not found|Unrecognized option|Error parsing options/i,
    { reason: 'this ffmpeg lacks an option that Gantry needs (5.1 or newer is needed)', retry: 'never' },
  ],
  [
    /Invalid data found|moov atom not found|could not find codec parameters|Invalid argument|Error marking filters as finished|Cannot determine format of input/i,
    { reason: 'the stream cannot be read as video', retry: 'normal' },
  ],
]

/** The same of files, which are as they are until somebody changes them. */
const ofFiles: Readonly<Record<string, Failure>> = {
  'the stream cannot be read as video': { reason: 'the file cannot be read as video', retry: 'never' },
  'no video in the stream': { reason: 'there is no video in the file', retry: 'slow' },
}

/** A file whose end was reached without a picture; a file that is still being written may have one later. */
export function nothingToShow(reason: string): Failure {
  return { reason, retry: 'slow' }
}

/** Picks the first known cause in the decoder's last lines; order of the table, not of the lines, decides. */
export function failureOf(tail: readonly string[], isLocalFile: boolean): Failure {
  const limit = tail.map((line) => limitIn(line, isLocalFile)).find((found) => found !== undefined)
  if (limit !== undefined) return failureBy(limit)
  for (const [pattern, failure] of table) {
    if (!tail.some((line) => pattern.test(line))) continue
    return (isLocalFile ? ofFiles[failure.reason] : undefined) ?? failure
  }
  return { reason: tail.length === 0 ? 'the stream ended' : 'the decoder ended', retry: 'normal' }
}

/** Longest time that a camera may ask for. */
const mostRetryAfterMs = 300_000

/**
 * Why an HTTP answer is of no use.
 *
 * @param retryAfter - the header of that name: seconds, or a date.
 */
export function failureByStatus(status: number, retryAfter?: string): Failure {
  const known = table.find(([pattern]) => pattern.test(`${status}`))?.[1]
  const failure = known ?? { reason: `the camera answers with HTTP status ${status}`, retry: 'normal' }
  const seconds = /^\d+$/.test(retryAfter ?? '') ? Number(retryAfter) : undefined
  const waitMs = seconds === undefined ? Date.parse(retryAfter ?? '') - wallMs() : seconds * 1_000
  return waitMs > 0 ? { ...failure, retryAfterMs: Math.min(waitMs, mostRetryAfterMs) } : failure
}

/** Lines of a decoder that say why it ended. */
export function errorsIn(tail: readonly string[]): readonly string[] {
  return tail.filter((line) => /\[(error|fatal|panic)\]|setpriv|shared libraries/.test(line))
}

/** Of those, which are not of single pictures: a decoder goes on after damage, and after what it finds odd. */
export function causesIn(tail: readonly string[]): readonly string[] {
  return errorsIn(tail).filter((line) => {
    const { kind } = parseDecoderLine(line)
    const isUsual = kind === 'chatter' && /\[(error|fatal|panic)\]/.test(line)
    return kind !== 'damage' && kind !== 'note' && !isUsual
  })
}

/** Why a decoder ended that was not asked to. @param problem - what the gate that it read through has seen. */
export function whyEnded(
  { unstarted, tail }: ProcessEnd,
  problem: Failure | undefined,
  isLocalFile: boolean,
): Failure {
  if (unstarted !== undefined) return whyUnstarted(unstarted)
  const found = problem ?? failureOf(causesIn(tail), isLocalFile)
  const limit = found.systemHint === undefined ? shortage() : undefined
  return limit === undefined ? found : failureBy(limit)
}

function whyUnstarted(error: NodeJS.ErrnoException): Failure {
  if (error.code === 'ENOENT') return ffmpegMissing
  const limit = systemLimit(error)
  return limit === undefined
    ? { reason: `ffmpeg cannot be started: ${error.message}`, retry: 'normal' }
    : failureBy(limit)
}

/** A limit of the system as the reason; it may be gone the next time. */
export function failureBy({ reason, hint }: SystemLimit): Failure {
  return { reason, retry: 'normal', systemHint: hint }
}

/**
 * Cameras speak of permissions and addresses as well, and ffmpeg calls a broken connection an input/output error; only what keeps
 * the program from running, or a file from being read, is of the system then.
 */
function limitIn(line: string, isLocalFile: boolean): SystemLimit | undefined {
  const found = systemLimitIn(line)
  if (found?.code === 'EIO') return isLocalFile ? found : undefined
  const ambiguous = found?.code === 'EACCES' || found?.code === 'EPERM' || found?.code === 'EADDRNOTAVAIL'
  return ambiguous && !/failed to execute|shared libraries/.test(line) ? undefined : found
}
