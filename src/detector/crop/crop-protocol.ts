import type { CropPlan } from './crop-parameters.js'

/** What the worker that cuts boxes out of frames is loaded with, told, and answers. */
export type CropLoad = Readonly<{ plan: CropPlan }>

export type CropJob = Readonly<{
  /** RGB bytes `[heightPx, widthPx, 3]`; transferred. */
  frame: ArrayBuffer
  widthPx: number
  heightPx: number
  /** Five numbers, as a letterbox gives them; `undefined` where the frame is the picture itself. */
  geometry: Float32Array | undefined
  /** Six numbers a box, of which the first four are its corners in pixels of the picture. */
  boxes: Float32Array
}>

/** The tensor of all crops, in the form of the plan. */
export type CropAnswer = Readonly<{ crops: ArrayBuffer }>
