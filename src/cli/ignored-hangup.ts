import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { constants } from 'node:os'

/** How `bin/gantry.mjs` tells what it found, before Node was there. */
const told = 'GANTRY_IGNORED_SIGNALS'
const hangup = 1n << BigInt(constants.signals.SIGHUP - 1)
const writeOnly = 1

/**
 * Whether SIGHUP was ignored when this process began, as under `nohup`: then it is to stay so.
 *
 * Node sets every ignored signal back before a line of ours runs, so that the kernel no longer knows. What is left: the command `gantry`
 * looks before it starts Node; a shell names the program it has started, which is `nohup`; a parent that ignores the signal hands that on;
 * and in the place of a terminal nohup gives a standard input that can only be written.
 */
export function hangupWasIgnored(
  env: NodeJS.ProcessEnv = process.env,
  read: (path: string) => string = (path) => readFileSync(path, 'latin1'),
): boolean {
  const { [told]: seen } = env
  // It speaks of this process, not of those that it starts.
  Reflect.deleteProperty(env, told)
  if (seen !== undefined && seen !== '') return ignoresHangup(seen)
  if (basename(env['_'] ?? '') === 'nohup') return true
  return ignoresHangup(field(read, `/proc/${process.ppid}/status`, 'SigIgn')) || inputIsOfNohup(read)
}

/** @param mask - of signals, as `/proc/PID/status` writes it. */
function ignoresHangup(mask: string): boolean {
  return /^[0-9a-f]+$/.test(mask) && (BigInt(`0x${mask}`) & hangup) !== 0n
}

function inputIsOfNohup(read: (path: string) => string): boolean {
  const flags = field(read, '/proc/self/fdinfo/0', 'flags')
  return flags !== '' && (Number.parseInt(flags, 8) & 3) === writeOnly
}

/** Empty where the system does not tell. */
function field(read: (path: string) => string, path: string, name: string): string {
  try {
    return new RegExp(`^${name}:\\s*(\\S+)`, 'm').exec(read(path))?.[1] ?? ''
  } catch {
    return ''
  }
}
