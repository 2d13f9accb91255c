import { once } from 'node:events'
import { exitCodes } from './failure.js'
import type { StopSignals } from './stop-signals.js'

/**
 * Runs a service until a signal asks it to stop, then stops it in good order. A signal during the start ends the start, wherever it is.
 *
 * @param start - ends what it has begun and rejects when the signal aborts before it has resolved.
 * @returns 0 after SIGTERM and SIGHUP, 130 after SIGINT, so that a shell script ends with its Ctrl-C.
 */
export async function untilStopped<T extends { stop(): Promise<void> }>(
  start: (signal: AbortSignal) => Promise<T>,
  whenRunning: (service: T) => void,
  signals: StopSignals,
): Promise<number> {
  const { asked } = signals
  try {
    asked.throwIfAborted()
    const service = await start(asked)
    whenRunning(service)
    if (!asked.aborted) await once(asked, 'abort')
    await service.stop()
  } catch (error) {
    // What fails because it is being ended is no failure.
    if (!asked.aborted) throw error
  } finally {
    signals.forget()
  }
  return signals.first === 'SIGINT' ? exitCodes.interrupted : exitCodes.ok
}
