import { nowMs } from '../lifecycle/clock.js'
import { atMost, unlessAborted } from '../lifecycle/delay.js'
import type { InferRequest } from '../runtime/infer.js'
import { cancelledError, rejectedError } from '../runtime/request-outcome.js'
import { mostTimerMs } from '../runtime/scheduler-clock.js'

/**
 * Lets a request wait until its model is loaded, as long as it may take itself.
 *
 * @returns the request, with what is left of its time.
 * @throws ServingError `UNAVAILABLE` once its time has passed, `CANCELLED` when its client is gone; what `loading` rejects with
 */
export async function afterLoad(request: InferRequest, loading: Promise<void>): Promise<InferRequest> {
  const { timeoutUs, signal } = request
  const beganMs = nowMs()
  const loaded = loading.then(() => true)
  const inTime = timeoutUs === 0 ? loaded : atMost(Math.min(mostTimerMs, timeoutUs / 1e3), loaded)
  const isLoaded = await (signal === undefined ? inTime : unlessCancelled(request, inTime, signal))
  if (isLoaded !== true) throw rejectedError('Request timeout expired')
  if (timeoutUs === 0) return request
  return { ...request, timeoutUs: Math.max(1, timeoutUs - Math.round((nowMs() - beganMs) * 1e3)) }
}

async function unlessCancelled<T>(request: InferRequest, work: Promise<T>, signal: AbortSignal): Promise<T> {
  try {
    return await unlessAborted(work, signal)
  } catch (error) {
    throw signal.aborted ? cancelledError({ request }) : error
  }
}
