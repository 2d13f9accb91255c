import { pino, type Logger } from 'pino'
import { redactText } from '../config/redact.js'

export type Log = Logger

export type LogSettings = Readonly<{
  level: 'debug' | 'info' | 'warn' | 'error'
  format: 'auto' | 'json' | 'pretty'
}>

/** Strings inside a log record, however deep, with the credentials of URLs masked. */
function redactValue(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return redactText(value)
  if (depth === 0 || value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map((item) => redactValue(item, depth - 1))
  const plain = Object.getPrototypeOf(value) === Object.prototype
  if (!plain) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, redactValue(item, depth - 1)]))
}

function serializeError(error: unknown): unknown {
  if (!(error instanceof Error)) return redactValue(error, 4)
  const code = 'code' in error ? { code: error.code } : {}
  const hint = 'hint' in error ? { hint: error.hint } : {}
  const cause = error.cause === undefined ? {} : { cause: serializeError(error.cause) }
  return redactValue(
    { type: error.name, message: error.message, stack: error.stack, ...code, ...hint, ...cause },
    4,
  )
}

/**
 * The service's log: JSON lines on stderr, or a readable form on a terminal; stdout stays free for data.
 * Credentials inside URLs are masked in every string of every record.
 */
export function createLog(settings: LogSettings, name: string): Log {
  const pretty = settings.format === 'pretty' || (settings.format === 'auto' && process.stderr.isTTY)
  const options = {
    name,
    level: settings.level,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    base: { pid: process.pid },
    serializers: { err: serializeError },
    formatters: {
      level: (label: string) => ({ level: label }),
      log: (record: Record<string, unknown>) =>
        Object.fromEntries(
          Object.entries(record).map(([key, value]) => [
            key,
            value instanceof Error ? serializeError(value) : redactValue(value, 4),
          ]),
        ),
    },
  }
  if (!pretty) return pino(options, pino.destination({ fd: 2, sync: false }))
  return pino(
    options,
    pino.transport({
      target: 'pino-pretty',
      options: { destination: 2, ignore: 'pid,hostname,name', translateTime: 'SYS:HH:MM:ss' },
    }),
  )
}
