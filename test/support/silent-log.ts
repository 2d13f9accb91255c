import { pino } from 'pino'
import type { Log } from '../../src/lifecycle/log.js'

export { silentLog } from '../../src/lifecycle/log.js'

/** A log whose records end in `lines`, parsed. */
export function recordingLog(): { log: Log; lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = []
  const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>)
  return { log: pino({ level: 'debug' }, { write }), lines }
}
