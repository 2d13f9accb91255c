import { delay } from '../../lifecycle/delay.js'
import type { GantryApi } from '../client/gantry-api.js'
import { type ArrivalTrace, type SeenPicture, traceOf } from './arrival-trace.js'
import { OptimizeSettingError } from './optimize-errors.js'

/**
 * Records when pictures of the cameras of a running service come, by its stream of results.
 *
 * @throws ServerUnreachableError, ServerTokenError; OptimizeSettingError where there is no camera, or too few pictures come; AbortError
 */
export async function recordTrace(
  api: GantryApi,
  seconds: number,
  signal: AbortSignal,
  progress: (text: string) => void,
): Promise<ArrivalTrace> {
  const cameras = (await api.cameras()).filter(({ status }) => status.state === 'live').map(({ id }) => id)
  if (cameras.length === 0)
    throw new OptimizeSettingError(
      `no camera of ${api.target.url} is live`,
      'Add cameras, or name a recorded file with --trace.',
    )
  const seen: SeenPicture[] = []
  const lost = new AbortController()
  let failure: Error | undefined
  const end = await api.stream(
    cameras,
    ({ cameraId, seq, capturedAt }) => seen.push({ cameraId, seq, capturedAtMs: Date.parse(capturedAt) }),
    (error) => {
      failure = error
      lost.abort()
    },
  )
  try {
    progress(`recording arrivals of ${cameras.length} cameras for ${seconds} s`)
    await delay(seconds * 1e3, AbortSignal.any([signal, lost.signal]))
  } finally {
    end()
  }
  signal.throwIfAborted()
  if (failure !== undefined) throw failure
  return traceOf(seen)
}
