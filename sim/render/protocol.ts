import { type Scenario } from '../scenario/schema.js'

/** Bytes before the pixels of a frame message: the frame index, uint32 little endian. */
export const frameHeaderBytes = 4

/** What the page is asked to draw. Frames come back in this order, RGBA, top row first. */
export interface PageJob {
  readonly kind: 'picture' | 'ids'
  readonly scenario: Scenario
  readonly frames: readonly number[]
  readonly widthPx: number
  readonly heightPx: number
  readonly bakePasses: number
}
