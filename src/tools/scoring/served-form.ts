import type { Tensor } from '../../tensors/tensor.js'
import type { Detection } from '../../vision/detection.js'
import type { SizePx } from '../../vision/letterbox.js'
import type { Picture } from './picture-scorer.js'

/** A picture as a request to a served model, and how its answer is read. */
export type ServedRequest = Readonly<{
  size: SizePx
  inputs: readonly Tensor[]
  /** @param outputs - those the form names. */
  read(outputs: readonly Tensor[]): readonly Detection[]
}>

/** How a served model takes pictures and gives detections. */
export interface ServedForm {
  readonly labels: readonly string[]
  /** What it takes, for people. */
  readonly input: string
  /** Names of the outputs that are read. */
  readonly outputs: readonly string[]
  /** @throws ImageInvalidError, ImageTooLargeError */
  requestFor(picture: Picture): Promise<ServedRequest>
}
