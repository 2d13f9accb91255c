import { nowMs } from './clock.js'

/** Work that can be interrupted: it yields wherever the loop may see to others, every few hundred microseconds at least. */
export type Pieces<T> = Generator<undefined, T>

/** Longest that pieces of work run on before the loop has its turn, all that is under way together. */
const turnMs = 5

type Waiting = { go(): void }

const waiting: Waiting[] = []
let scheduled = false

/** Does the work here and now. Only for work that is known to be short, and in threads that serve nobody. */
export function atOnce<T>(work: Pieces<T>): T {
  for (;;) {
    const { done, value } = work.next()
    if (done === true) return value
  }
}

/**
 * Does the work piece by piece, and lets the loop go on in between. However many such works are under way, one has its turn each time
 * around the loop.
 *
 * @param signal - ends the work early.
 * @throws what the work throws, and the reason of the signal
 */
export async function inTurns<T>(work: Pieces<T>, signal?: AbortSignal): Promise<T> {
  for (;;) {
    await turn()
    signal?.throwIfAborted()
    const untilMs = nowMs() + turnMs
    do {
      const { done, value } = work.next()
      if (done === true) return value
    } while (nowMs() < untilMs)
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push({ go: resolve })
    schedule()
  })
}

function schedule(): void {
  if (scheduled) return
  scheduled = true
  setImmediate(() => {
    scheduled = false
    waiting.shift()?.go()
    if (waiting.length > 0) schedule()
  })
}
