import type { Rendering } from './rendering.js'

/** One message on its way to everybody. */
export type BroadcastJob = Readonly<{
  position: number
  cameraId: string
  rendering: Rendering
  /** Picture of the same frame, ready for the wire. */
  picture: Buffer | undefined
  /** Monotonic time of publishing. */
  atMs: number
}>
