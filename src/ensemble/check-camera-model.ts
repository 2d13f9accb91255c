import { planDetector } from '../detector/detector-plan.js'
import type { Repositories } from '../repository/repository-files.js'
import { findCameraModel } from './camera-model.js'

/**
 * Whether cameras could run an ensemble, as far as the files of the repositories say.
 *
 * @throws ModelNotFoundError, ModelConfigError, ModelInvalidError, ModelLabelsError, HeadUnknownError
 */
export function checkCameraModel(repositories: Repositories, name: string): void {
  const { detector, gpuDetector } = findCameraModel(repositories, name)
  for (const each of [detector, gpuDetector]) if (each !== undefined) planDetector(each)
}
