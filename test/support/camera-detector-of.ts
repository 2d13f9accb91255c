import { findCameraModel } from '../../src/ensemble/camera-model.js'
import type { OnnxModel } from '../../src/repository/onnx-model.js'

/** The model file that cameras run behind that name. */
export function cameraDetectorOf(repository: string, name: string): OnnxModel {
  const { detector } = findCameraModel(repository, name)
  if (detector === undefined) throw new Error(`${name} has no detector of its own`)
  return detector
}
