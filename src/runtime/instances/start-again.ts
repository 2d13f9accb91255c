import { backoffMs } from '../../lifecycle/backoff.js'
import { delay } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import { isPassing } from '../../lifecycle/system-limit.js'

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

/** So many ends, or failed starts, in that time are no accident. */
const mostEnds = 5
const endsWindowMs = 60_000

/** Counts how often instances of a group end. */
export class EndCount {
  /** In the last minute. */
  #endsMs: number[] = []
  /** The last of them. */
  #last: unknown

  /** @returns why no more are to be started; `undefined` while that is not so. */
  add(error: unknown, nowMs: number): string | undefined {
    // That it cannot be started for want of something is no fault of the model.
    if (isPassing(error)) return undefined
    // Instances of the same thread end with it.
    if (error === this.#last) return undefined
    this.#last = error
    this.#endsMs = [...this.#endsMs.filter((endMs) => nowMs - endMs < endsWindowMs), nowMs]
    if (this.#endsMs.length < mostEnds) return undefined
    const why = error instanceof Error ? error.message : String(error)
    return `its instances ended ${mostEnds} times within ${endsWindowMs / 1e3} s: ${why}`
  }
}
