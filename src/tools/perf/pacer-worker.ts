import '../../lifecycle/catch-warnings.js'
import { parentPort, workerData } from 'node:worker_threads'
import { InternalError } from '../../errors.js'
import { nowMs } from '../../lifecycle/clock.js'
import { arrivalGaps } from './arrivals.js'
import type { PacerStart } from './pacer.js'

/**
 * Entry of the thread that tells when requests of a rate are due. Timers of a loop are whole milliseconds and wait behind its other work;
 * a thread that sleeps is woken within a tenth of one.
 */
if (parentPort === null) throw new InternalError('pacer-worker runs in a worker thread only')
const { arrivals, stop } = workerData as PacerStart
const stopped = new Int32Array(stop)
const nextGapMs = arrivalGaps(arrivals)

// None is due: it has begun.
parentPort.postMessage([])
let dueMs = nowMs() + nextGapMs()
while (Atomics.load(stopped, 0) === 0) {
  const waitMs = dueMs - nowMs()
  if (waitMs > 0) {
    // Woken before its time only to stop.
    Atomics.wait(stopped, 0, 0, waitMs)
    continue
  }
  const due: number[] = []
  for (const untilMs = nowMs(); dueMs <= untilMs; dueMs += nextGapMs()) due.push(dueMs)
  parentPort.postMessage(due)
}
