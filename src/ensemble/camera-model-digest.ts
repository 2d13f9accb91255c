import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import type { Repositories } from '../repository/repository-files.js'
import { findCameraModel } from './camera-model.js'

/**
 * Name, version and digest of what cameras run on, in words: another file of weights or other labels have another text.
 *
 * @returns empty where it cannot be read: the engine that loads it tells why.
 */
export async function describeCameraModel(repositories: Repositories, ensemble: string): Promise<string> {
  try {
    const { name, version, detector, gpuDetector, float16Detector } = findCameraModel(repositories, ensemble)
    const hash = createHash('sha256')
    for (const model of [detector, gpuDetector, float16Detector]) {
      hash.update(JSON.stringify([model?.name, model?.version, model?.labels]))
      if (model === undefined) continue
      for await (const chunk of createReadStream(model.path)) hash.update(chunk as Buffer)
    }
    return `${name} version ${version} (sha256 ${hash.digest('hex').slice(0, 12)})`
  } catch {
    return ''
  }
}
