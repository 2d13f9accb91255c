import { logLevel, type logCreator } from 'kafkajs'
import { mask } from '../../config/redact.js'
import { nowMs } from '../../lifecycle/clock.js'
import type { Log } from '../../lifecycle/log.js'
import { endedByUs } from './socket-guard.js'

/** Lines of the client library per window; it writes several for every attempt to connect. */
const maxLines = 5
const windowMs = 10_000

/** The first: this service retries with a new producer instead, see kafka-link.ts. */
const expected = ['Limiting retries for the idempotent producer', endedByUs]

/**
 * The log of kafkajs inside ours: its errors are our warnings, as the delivery goes on; a few per window, without stacks, and
 * with what is secret of the login masked wherever it stands.
 */
export function kafkaLog(log: Log, secrets: readonly string[]): logCreator {
  let windowStartMs = Number.NEGATIVE_INFINITY
  let lines = 0
  let suppressed = 0
  const clean = (text: string) => secrets.reduce((cleaned, secret) => cleaned.replaceAll(secret, mask), text)
  return () =>
    ({ level, log: entry }) => {
      if (level > logLevel.WARN || expected.some((words) => entry.message.includes(words))) return
      const atMs = nowMs()
      if (atMs - windowStartMs >= windowMs) {
        windowStartMs = atMs
        lines = 0
      }
      lines += 1
      if (lines > maxLines) {
        suppressed += 1
        return
      }
      const broker: unknown = entry['broker']
      const fields = {
        ...(typeof broker === 'string' ? { broker } : {}),
        ...(suppressed > 0 ? { suppressed } : {}),
        detail: clean(entry.message),
      }
      suppressed = 0
      log.warn(fields, 'kafka client')
    }
}
