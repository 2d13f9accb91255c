/**
 * Why nobody could have seen what happened in front of a camera, the one that is told first of those that hold at once.
 *
 * - `disabled`: switched off, or a file without `loop` has ended
 * - `service_down`: the service did not run, or its cameras do not give pictures yet since it began
 * - `engine_down`: the engine of the camera did not run, or does not get its pictures yet since it began
 * - `disconnected`: the camera cannot be reached, or says no
 * - `stalled`: connected, and no pictures come
 * - `shed`: pictures come, and too few of them are analysed
 * - `suspect`: the decoder reported damage
 * - `frozen_picture`: the very same picture comes again and again
 * - `dark`, `covered`, `blurred`, `moved`: what the picture itself shows
 */
export const blindCauses = [
  'disabled',
  'service_down',
  'engine_down',
  'disconnected',
  'stalled',
  'shed',
  'suspect',
  'frozen_picture',
  'dark',
  'covered',
  'blurred',
  'moved',
] as const
export type BlindCause = (typeof blindCauses)[number]

/** What the pictures of a camera themselves tell. */
export type PictureTrouble = Extract<BlindCause, 'frozen_picture' | 'dark' | 'covered' | 'blurred' | 'moved'>

/** What checks of the pictures of one camera say. Times are monotonic milliseconds. */
export type PictureVerdict = Readonly<{
  /** What is wrong with the picture; null where nothing is. */
  trouble: PictureTrouble | null
  /** Since when: the first picture of it, which is before it was sure. */
  sinceMs: number
  /** From here on it may be otherwise: a change has begun of which nothing is sure yet. Null where there is none. */
  doubtMs: number | null
}>

export const coverageStates = ['watched', 'blind'] as const
export type CoverageState = (typeof coverageStates)[number]

/** A stretch of one camera's time; wall times in milliseconds, the end not within. Stretches of a camera touch and never overlap. */
export type CoverageSpan = Readonly<{
  cameraId: string
  fromMs: number
  toMs: number
  /** Null: it was watched. */
  cause: BlindCause | null
}>
