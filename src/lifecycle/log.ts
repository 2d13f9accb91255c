import fs from 'node:fs'
import { createRequire } from 'node:module'
import { pino, type DestinationStream, type Logger } from 'pino'
import type * as pinoPretty from 'pino-pretty'
import { redactText } from '../config/redact.js'

export type Log = Logger

export type LogSettings = Readonly<{
  level: 'debug' | 'info' | 'warn' | 'error'
  format: 'auto' | 'json' | 'pretty'
}>

type Sink = { write(line: string): unknown; flush?(done?: (error?: Error) => void): void }

/** Masks the credentials of URLs in every finished line, wherever in it they stand. */
class RedactingStream implements DestinationStream {
  constructor(readonly sink: Sink) {}

  write(line: string): void {
    this.sink.write(redactText(line))
  }

  flush(done?: (error?: Error) => void): void {
    if (this.sink.flush) this.sink.flush(done)
    else done?.()
  }
}

/** Lines that wait while they cannot be written; beyond it they are lost. */
const maxWaitingBytes = 1024 ** 2

/** How often what is left at the end is tried again where its reader does not read, a tenth of a second apart. */
const lastTries = 10

/**
 * Standard error, which may be a file on a full disk, or a pipe that nobody reads any more: lines are lost then, the service goes on, and
 * logs again once there is room. By itself the stream would end the process with its first error, and would try for ever, at the end of
 * the process, to write what is left.
 */
function standardError(): DestinationStream & Required<Pick<Sink, 'flush'>> {
  let lastTry = Infinity
  const stream = pino.destination({
    fd: 2,
    sync: false,
    maxLength: maxWaitingBytes,
    retryEAGAIN: () => lastTry-- > 0,
  })
  const flushSync = stream.flushSync.bind(stream)
  stream.on('error', () => undefined)
  stream.flushSync = () => {
    const { writeSync } = fs
    lastTry = lastTries
    // It has no other way to be told that a line is lost: every error is tried again.
    fs.writeSync = ((fd: number, text: string | Uint8Array) => {
      try {
        return writeSync(fd, text as string)
      } catch (error) {
        if (isBusy(error)) throw error
        return Buffer.byteLength(text)
      }
    }) as typeof fs.writeSync
    try {
      flushSync()
    } catch {
      // Nobody reads, and the process is to end.
    } finally {
      fs.writeSync = writeSync
      lastTry = Infinity
    }
  }
  return stream
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'EAGAIN' || error.code === 'EBUSY')
}

/** Standard error, for people. The package is loaded here, since most processes have nobody to read it. */
function terminal(): Sink {
  const { PinoPretty } = createRequire(import.meta.url)('pino-pretty') as typeof pinoPretty
  return PinoPretty({
    destination: standardError(),
    ignore: 'pid,hostname,name',
    translateTime: 'SYS:HH:MM:ss',
  })
}

/** An error with its causes, code and hint, for the log. */
function serializeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const code = 'code' in error ? { code: error.code } : {}
  const hint = 'hint' in error ? { hint: error.hint } : {}
  const cause = error.cause === undefined ? {} : { cause: serializeError(error.cause) }
  return { type: error.name, message: error.message, stack: error.stack, ...code, ...hint, ...cause }
}

/**
 * The service's log: JSON lines on stderr, or a readable form on a terminal; stdout stays free for data.
 * No line leaves with the credentials of a URL in it.
 */
export function createLog(settings: LogSettings, name: string): Log {
  const pretty = settings.format === 'pretty' || (settings.format === 'auto' && process.stderr.isTTY)
  const sink = pretty ? terminal() : standardError()
  const options = {
    name,
    level: settings.level,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    base: { pid: process.pid },
    serializers: { err: serializeError },
    formatters: { level: (label: string) => ({ level: label }) },
  }
  return pino(options, new RedactingStream(sink))
}

/** A log nobody reads. */
export function silentLog(): Log {
  return pino({ level: 'silent' })
}
