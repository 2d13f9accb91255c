import { existsSync } from 'node:fs'

const setpriv = ['/usr/bin/setpriv', '/bin/setpriv'].find((path) => existsSync(path))

/**
 * A command as it must be started to die with us: where Linux offers a parent-death signal, the kernel kills the child even when we are
 * killed without a chance to do it.
 */
export function withDeathSignal(command: string, args: readonly string[]): [string, string[]] {
  return setpriv ? [setpriv, ['--pdeathsig', 'KILL', command, ...args]] : [command, [...args]]
}
