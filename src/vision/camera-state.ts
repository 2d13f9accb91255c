/**
 * Where a camera stands.
 *
 * - `connecting`: the decoder was started, no frame yet
 * - `live`: frames arrive
 * - `stalled`: no frame for the stall time; the decoder is being ended
 * - `backoff`: waiting for the next attempt
 * - `disabled`: switched off by the user
 * - `failed`: will not be tried again until the camera is changed (a file that does not exist, a refused URL)
 */
export const cameraStates = ['connecting', 'live', 'stalled', 'backoff', 'disabled', 'failed'] as const
export type CameraState = (typeof cameraStates)[number]

/** A camera's state with why, for people. The reason never holds credentials. */
export type CameraStatus = Readonly<{
  state: CameraState
  reason: string
  /** Wall time of the last change. */
  sinceMs: number
  /** Decoder starts since the camera was added. */
  attempts: number
  /** Milliseconds until the next attempt, while in `backoff`. */
  retryInMs?: number
}>
