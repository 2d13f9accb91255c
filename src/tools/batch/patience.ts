import { type ErrorCode, GantryError, toErrorRecord } from '../../errors.js'
import { nowMs } from '../../lifecycle/clock.js'
import { delay } from '../../lifecycle/delay.js'
import { isPassing } from '../../lifecycle/system-limit.js'
import { BatchStoppedError } from './batch-errors.js'

const firstWaitMs = 200
const longestWaitMs = 5_000

/** A picture that ends the instance that runs it is tried so often: another one may have ended it. */
const mostCrashes = 3

/** Errors that every other picture would meet as well. */
const ofTheRun: ReadonlySet<ErrorCode> = new Set([
  'GANTRY_UNAUTHORIZED',
  'GANTRY_FORBIDDEN',
  'GANTRY_MODEL_NOT_FOUND',
  'GANTRY_MODEL_CONFIG',
  'GANTRY_PROVIDER_UNAVAILABLE',
  'GANTRY_DEVICE_FAILED',
  'GANTRY_PROVIDER_FAILS',
])

export type Patience = Readonly<{
  /** How long something that every picture needs may be away. */
  forMs: number
  signal: AbortSignal
}>

/**
 * Does something again while what it needs is away: a server that starts anew, a store, room on the disk.
 *
 * @throws BatchStoppedError once that was for too long, or at once where waiting does not help; what is wrong with this picture alone as it
 *   is; the last error when the signal aborts
 */
export async function patiently<T>(work: () => Promise<T>, { forMs, signal }: Patience): Promise<T> {
  const untilMs = nowMs() + forMs
  let crashes = 0
  for (let waitMs = firstWaitMs; ; waitMs = Math.min(longestWaitMs, 2 * waitMs)) {
    try {
      return await work()
    } catch (error) {
      if (error instanceof BatchStoppedError) throw error
      const { code, message, hint } = toErrorRecord(error)
      if (ofTheRun.has(code)) throw new BatchStoppedError(message, hint, error)
      if (!mayHelp(error)) throw error
      if (code === 'GANTRY_WORKER_EXITED' && (crashes += 1) >= mostCrashes) throw error
      if (nowMs() + waitMs > untilMs) throw new BatchStoppedError(message, hint, error)
      if (!(await delay(waitMs, signal))) throw error
    }
  }
}

function mayHelp(error: unknown): boolean {
  return isPassing(error) || (error instanceof GantryError && error.retryable)
}
