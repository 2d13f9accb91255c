// Clients of a bench stand for other machines: they get what the service leaves. To be forked with `detached: true`, for a session of its own.
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'

/** Ends with the bench, too. */
export function standAside() {
  process.on('disconnect', () => process.exit(1))
  setPriority(19)
  try {
    // Where Linux weighs sessions against each other, a nice value counts inside the session alone.
    writeFileSync('/proc/self/autogroup', '19')
  } catch {
    // A kernel without autogroup weighs processes by themselves.
  }
  spawnSync('chrt', ['--all-tasks', '--idle', '--pid', '0', String(process.pid)])
}
