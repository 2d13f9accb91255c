import type { GraphTensor } from './graph-check.js'

/** Tensors of a step that needs no model file. */
export type BuiltInStep = Readonly<{
  inputs: readonly GraphTensor[]
  outputs: readonly GraphTensor[]
  /** The step reads whatever the detector gives, under any name. */
  takesAny?: boolean
}>

/** Steps that an ensemble names without having a folder for them. A folder of another name has them as its `backend`. */
export const builtInStepNames = ['image_decode', 'letterbox', 'detection_head', 'crop'] as const
export type BuiltInStepName = (typeof builtInStepNames)[number]

/**
 * - `image_decode`: `image` BYTES `[1]` or uint8 `[bytes]`, a JPEG or PNG -> `pixels` uint8 `[H, W, 3]`
 * - `letterbox`: `image` uint8 `[H, W, 3]` -> `pixels`, as the detector takes them; `geometry` float32 `[1, 5]`: scale, padding
 *   before the picture in x and y, width and height of the picture; `size` int64 `[1, 2]`: width and height of `pixels`; and `frame`
 *   uint8 `[H, W, 3]`: what the detector sees, as a picture
 * - `detection_head`: the detector's outputs and `geometry` -> `detections` float32 `[-1, 6]` (x1, y1, x2, y2, score, class), in
 *   pixels of the picture
 * - `crop`: `frame`, `geometry` and `detections` -> `crops`, a row for each box, as the model takes them that reads them; without
 *   `geometry` the frame is the picture itself
 *
 * An ensemble names them directly, or a model folder of another name whose `config.pbtxt` has them as its backend.
 */
export const builtInSteps: Readonly<Record<BuiltInStepName, BuiltInStep>> = {
  image_decode: { inputs: [{ name: 'image' }], outputs: [{ name: 'pixels' }] },
  letterbox: {
    inputs: [{ name: 'image', dataType: 'TYPE_UINT8' }],
    outputs: [
      { name: 'pixels' },
      { name: 'geometry', dataType: 'TYPE_FP32' },
      { name: 'size' },
      { name: 'frame', dataType: 'TYPE_UINT8' },
    ],
  },
  detection_head: {
    inputs: [{ name: 'geometry', dataType: 'TYPE_FP32' }],
    outputs: [{ name: 'detections', dataType: 'TYPE_FP32' }],
    takesAny: true,
  },
  crop: {
    inputs: [
      { name: 'frame', dataType: 'TYPE_UINT8' },
      { name: 'geometry', dataType: 'TYPE_FP32', optional: true },
      { name: 'detections', dataType: 'TYPE_FP32' },
    ],
    outputs: [{ name: 'crops' }],
  },
}

export function isBuiltInStep(name: string): name is BuiltInStepName {
  return builtInStepNames.some((known) => known === name)
}
