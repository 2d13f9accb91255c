import { backoffMs } from '../lifecycle/backoff.js'
import { delay } from '../lifecycle/delay.js'
import type { Log } from '../lifecycle/log.js'

/** The place of an instance: what starts there, and how often it ended since its last good run. */
export type Restarted = { readonly index: number; failures: number }

export type StartAgainOptions = Readonly<{
  /** Of the model, for people. */
  name: string
  log: Log
  /** Ends the waiting. */
  stopped: AbortSignal
  start: () => Promise<unknown>
  /** Called with what ended the instance, then with what each failed start threw. @returns whether to start another. */
  onEnd: (error: unknown) => boolean
  /** It is up again. */
  onIdle: () => void
}>

const restartBackoff = { baseMs: 250, capMs: 15_000 }

/** Starts the instance of a place again until it is up, ever more slowly while it keeps ending. Never rejects. */
export async function startAgain(
  place: Restarted,
  ended: unknown,
  { name, log, stopped, start, onEnd, onIdle }: StartAgainOptions,
): Promise<void> {
  for (let error = ended; onEnd(error);) {
    const waitMs = backoffMs(place.failures, restartBackoff)
    place.failures += 1
    log.warn(
      { instance: `${name}#${place.index}`, waitMs: Math.round(waitMs), err: error },
      'instance ended, starting another',
    )
    if (!(await delay(waitMs, stopped))) return
    try {
      await start()
      onIdle()
      return
    } catch (failed) {
      if (stopped.aborted) return
      error = failed
    }
  }
}
