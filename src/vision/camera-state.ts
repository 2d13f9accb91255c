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

/**
 * Where a stream is decoded.
 *
 * - `software`: by the processor
 * - `cuda-scaled`: by an NVIDIA card, which also scales the pictures that are sampled
 * - `cuda`: by such a card; pictures that are sampled come back whole
 * - `vaapi`, `auto`: by the accelerator of that name of ffmpeg; every picture comes back whole
 */
export const decodePlaces = ['software', 'cuda-scaled', 'cuda', 'vaapi', 'auto'] as const
export type DecodePlace = (typeof decodePlaces)[number]

/** How the stream of a camera is decoded now. */
export type CameraDecoding = Readonly<{
  mode: DecodeMode
  /** Why, for people; empty where it is as the settings say and all is well. */
  reason: string
  /** From one key frame to the next, about; null while two have not come, and where the settings say `full`. */
  keyFrameGapMs: number | null
  by: DecodePlace
  /** Why not by the hardware that the settings ask for, or not all of it there, for people; empty where it is as they say. */
  byReason: string
  /** The URL gives one picture for each request, and is asked so many times a second; absent for streams. */
  polledFps?: number
  /** Which video is shown, of a file or stream that has several; absent where it has one. */
  track?: string
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
