import { sessionSettings } from '../backends/onnxruntime/session-settings.js'
import { detectionLimits } from '../detector/detection-head/head-parameters.js'
import { type DetectorPlan, planDetector } from '../detector/detector-plan.js'
import { type CameraShapes, noCameraShapes } from '../detector/input-size.js'
import type { OnnxModel } from '../repository/onnx-model.js'
import type { Repositories } from '../repository/repository-files.js'
import { type CameraModel, findCameraModel } from './camera-model.js'

/** A detector that cameras may run, and how. */
export type PlannedDetector = Readonly<{ detector: OnnxModel; plan: DetectorPlan }>

/** Those of a model: its own, and what takes its place on a GPU, where there is such a one. */
export type PlannedDetectors = Readonly<{
  own: PlannedDetector
  onGpu: PlannedDetector | undefined
  inFloat16: PlannedDetector | undefined
}>

/**
 * How cameras would run the detectors of a model: all that a load finds out of files alone. It is asked by the load itself, `gantry check`
 * and `gantry models inspect`, so that none of them knows better.
 *
 * @param shapes - of the cameras; absent: each runs at the size of its export.
 * @returns `undefined` where the detector is a step of its own.
 * @throws ModelInvalidError, ModelLabelsError, ModelConfigError, HeadUnknownError, TensorShapeError
 */
export function planCameraModel(
  { detector, gpuDetector, float16Detector, head }: CameraModel,
  shapes?: CameraShapes,
): PlannedDetectors | undefined {
  if (detector === undefined) return undefined
  detectionLimits(head.name, head.config)
  const planned = (each: OnnxModel) => {
    // What its sessions are opened with can be wrong as well.
    sessionSettings(each.config, 1)
    return { detector: each, plan: planDetector(each, shapes) }
  }
  return {
    own: planned(detector),
    onGpu: gpuDetector && planned(gpuDetector),
    inFloat16: float16Detector && planned(float16Detector),
  }
}

/**
 * Whether cameras could run an ensemble, as far as the files of the repositories say.
 *
 * @throws ModelNotFoundError, and as {@link planCameraModel}
 */
export function checkCameraModel(repositories: Repositories, name: string): void {
  planCameraModel(findCameraModel(repositories, name), noCameraShapes)
}
