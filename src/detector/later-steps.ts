import type { Service } from '../lifecycle/service.js'
import type { Attribute } from '../vision/detection.js'
import type { FrameGeometry } from './frame-geometry.js'

/** A frame whose boxes are known. */
export type FoundFrame = Readonly<{
  cameraId: string
  /** Borrowed until the promise settles; what is under way then reads it no more, or for nothing. */
  rgbHwc: ArrayBuffer
  geometry: FrameGeometry
  /** As in `FrameDetections`. */
  rows: Float32Array<ArrayBuffer>
}>

/** What becomes of it: boxes, and for each what the steps say of it. */
export type LaterResult = Readonly<{
  rows: Float32Array<ArrayBuffer>
  /** One list a row; empty where nothing is said of any. */
  attributes: readonly (readonly Attribute[])[]
}>

/** Steps of an ensemble behind its detection head. */
export interface LaterSteps extends Service {
  /** Never rejects: a step that fails, hangs or is late costs what it says, never the boxes. */
  run(frame: FoundFrame): Promise<LaterResult>
  /** Counted since the last call. */
  takeFailures(): readonly StepFailures[]
  /** Idempotent, never rejects. */
  stop(drainMs: number): Promise<void>
}

/** How often a step did not give what it should. */
export type StepFailures = Readonly<{ step: string; failed: number; late: number }>
