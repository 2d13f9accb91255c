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

/**
 * What of a stream is decoded.
 *
 * - `full`: every picture, as the stream means it
 * - `fast`: every picture, without the loop filter of those that no other one refers to
 * - `keyframes`: key frames alone
 */
export const decodeModes = ['full', 'fast', 'keyframes'] as const
export type DecodeMode = (typeof decodeModes)[number]

/** How the stream of a camera is decoded now. */
export type CameraDecoding = Readonly<{
  mode: DecodeMode
  /** Why, for people; empty where it is as the settings say and all is well. */
  reason: string
  /** From one key frame to the next, about; null while two have not come, and where the settings say `full`. */
  keyFrameGapMs: number | null
}>

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
  /** Only while a stream is decoded. */
  decode?: CameraDecoding
}>
