/** As much of a log as a thread has: what it says goes to the log of the one that started it. */
export type PlainLog = Readonly<
  Record<'info' | 'warn', (fields: Readonly<Record<string, unknown>>, text: string) => void>
>

/** A line of a thread, on its way there. */
export type LogMessage = Readonly<{
  type: 'log'
  level: keyof PlainLog
  fields: Readonly<Record<string, unknown>>
  text: string
}>

/** The log of a thread. */
export function threadLog(say: (message: LogMessage) => void): PlainLog {
  return {
    info: (fields, text) => say({ type: 'log', level: 'info', fields, text }),
    warn: (fields, text) => say({ type: 'log', level: 'warn', fields, text }),
  }
}
