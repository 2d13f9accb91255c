import type { Backend } from '../inference/supported-config.js'

/** Tensors of a step that needs no model file. `*` takes any name: the step reads whatever the detector gives. */
export type BuiltInStep = Readonly<{ inputs: readonly string[]; outputs: readonly string[] }>

/**
 * - `letterbox`: `image` uint8 `[H, W, 3]` -> `pixels` uint8 `[N, H, W, 3]` and `geometry` float32 `[3]` (scale, x and y padding)
 * - `detection_head`: the detector's outputs and `geometry` -> `detections` float32 `[-1, 6]` (x1, y1, x2, y2, score, class)
 *
 * An ensemble names them directly, or a model folder of another name whose `config.pbtxt` has them as its backend.
 */
export const builtInSteps: Readonly<Partial<Record<Backend, BuiltInStep>>> = {
  letterbox: { inputs: ['image'], outputs: ['pixels', 'geometry'] },
  detection_head: { inputs: ['*', 'geometry'], outputs: ['detections'] },
}

/** Whether a step may have that tensor. */
export function hasTensor(names: readonly string[], name: string): boolean {
  return names.includes(name) || names.includes('*')
}
