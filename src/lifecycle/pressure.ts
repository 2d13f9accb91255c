import { readFileSync } from 'node:fs'

/**
 * How much of the last ten seconds something on this machine waited for a processor, or for memory to be read back or made free, in
 * percent; `undefined` where the kernel does not tell.
 *
 * @see https://docs.kernel.org/accounting/psi.html
 */
export function waitingShare(resource: 'cpu' | 'memory', folder = '/proc/pressure'): number | undefined {
  try {
    const share = /^some avg10=([\d.]+)/.exec(readFileSync(`${folder}/${resource}`, 'utf8'))?.[1]
    return share === undefined ? undefined : Number(share)
  } catch {
    return undefined
  }
}
