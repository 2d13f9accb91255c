import { constants } from 'node:os'
import { exitCodes } from './failure.js'

/** Longest a stop may take: well under the 10 s that supervisors grant. */
const drainMs = 8_000

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
type StopSignal = (typeof signals)[number]

/** Where signals come from and what a second one does; `process` outside of tests. */
export interface SignalSource {
  on(signal: StopSignal, listener: () => void): unknown
  off(signal: StopSignal, listener: () => void): unknown
  exit(code: number): void
}

/**
 * Runs a service until a signal asks it to stop, then stops it in good order.
 *
 * A second signal ends the process at once with 128 + its number. A signal during the start stops what has been started.
 *
 * @returns 0 after SIGTERM and SIGHUP, 130 after SIGINT, so that a shell script ends with its Ctrl-C.
 */
export async function untilStopped<T extends { stop(drainMs: number): Promise<void> }>(
  start: () => Promise<T>,
  whenRunning: (service: T) => void,
  source: SignalSource = process,
): Promise<number> {
  const { first, forget } = listen(source)
  try {
    const service = await start()
    whenRunning(service)
    const signal = await first
    await service.stop(drainMs)
    return signal === 'SIGINT' ? exitCodes.interrupted : exitCodes.ok
  } finally {
    forget()
  }
}

function listen(source: SignalSource): { first: Promise<StopSignal>; forget: () => void } {
  let tellFirst: (signal: StopSignal) => void
  const first = new Promise<StopSignal>((resolve) => (tellFirst = resolve))
  let asked = false
  const listeners = signals.map((signal) => {
    const listener = () => {
      if (asked) return source.exit(128 + constants.signals[signal])
      asked = true
      tellFirst(signal)
    }
    source.on(signal, listener)
    return () => source.off(signal, listener)
  })
  return { first, forget: () => listeners.forEach((off) => off()) }
}
