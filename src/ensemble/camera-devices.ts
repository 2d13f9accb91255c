import type { Repositories } from '../repository/repository-files.js'
import { findCameraModel } from './camera-model.js'

/**
 * GPUs that the detector of cameras names in its `instance_group`, by number.
 *
 * @returns undefined where it names none, or a group is for any. Of a model that cannot be used as well: the engine that loads it tells why.
 */
export function cameraDevices(repositories: Repositories, ensemble: string): readonly number[] | undefined {
  let groups
  try {
    const { detector, gpuDetector } = findCameraModel(repositories, ensemble)
    groups = (gpuDetector ?? detector)?.config.instance_group ?? []
  } catch {
    return undefined
  }
  const onGpu = groups.filter(({ kind, passive }) => passive !== true && kind !== 'KIND_CPU')
  if (onGpu.length === 0 || onGpu.some(({ gpus }) => gpus.length === 0)) return undefined
  return [...new Set(onGpu.flatMap(({ gpus }) => gpus))].sort((a, b) => a - b)
}
