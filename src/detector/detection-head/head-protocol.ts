import type { DetectionLimits } from '../frame-reader.js'
import type { StrangeScores } from '../strange-scores.js'
import type { HeadPlan } from '../heads/head.js'
import type { SizePx } from '../../vision/letterbox.js'
import type { Datatype } from '../../tensors/element-type.js'

/** What the worker of a detection head is loaded with, told, and answers. */
export type HeadLoad = Readonly<{ plan: HeadPlan; input: SizePx; limits: DetectionLimits }>

export type HeadTensor = Readonly<{ datatype: Datatype; shape: readonly number[]; buffer: ArrayBuffer }>

/** The detector's outputs in the order of the plan, and five numbers of geometry per picture; buffers are transferred. */
export type HeadJob = Readonly<{ outputs: readonly HeadTensor[]; geometry: Float32Array }>

/** x1, y1, x2, y2, score, class of each detection of each picture, in pixels of the picture, best first. */
export type HeadAnswer = Readonly<{
  frames: readonly Float32Array<ArrayBuffer>[]
  /** What the detector gave in the place of scores, in any picture so far. */
  strange: StrangeScores | undefined
}>

export const geometryLength = 5
