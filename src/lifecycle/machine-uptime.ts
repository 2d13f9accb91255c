import { readFileSync } from 'node:fs'
import { uptime } from 'node:os'

/** How long the machine is on, time asleep included. No clock that is set changes it. */
export type MachineUptime = Readonly<{
  /** Milliseconds since it was started. */
  ms: number
  /** Which start that was; '' where the system does not say. Times of different starts cannot be compared. */
  boot: string
}>

let boot: string | undefined

export function machineUptime(): MachineUptime {
  boot ??= readBoot()
  return { ms: Math.round(uptime() * 1_000), boot }
}

function readBoot(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    // Another system than Linux, or a container that hides it.
    return ''
  }
}
