import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { ModelNotFoundError } from '../../repository/errors.js'
import { gpuModelOf } from '../../repository/gpu-model.js'
import { readModel, type RepositoryModel } from '../../repository/model-definition.js'
import { modelGeneration } from '../../repository/model-generation.js'
import type { Repositories } from '../../repository/repository-files.js'

/**
 * Names what a model computes, with the models that it runs: another one of the same name has another print.
 *
 * @returns 12 letters.
 * @throws ModelNotFoundError, ModelConfigError; what the file system throws
 */
export async function modelPrint(repositories: Repositories, name: string): Promise<string> {
  const hash = createHash('sha256')
  const seen = new Set<string>()
  const add = async (entry: RepositoryModel): Promise<void> => {
    if (seen.has(entry.name)) return
    seen.add(entry.name)
    const { config, filesDir, versions } = entry
    for (const version of versions.length > 0 ? versions : [0])
      hash.update(
        `${entry.name} ${version} ${await modelGeneration(config, join(filesDir, String(version)))}\n`,
      )
    const onGpu = gpuModelOf(config)
    const steps = config.ensemble_scheduling?.step.map(({ model_name: step }) => step) ?? []
    for (const step of onGpu === undefined ? steps : [...steps, onGpu]) {
      const model = found(repositories, step)
      if (model !== undefined) await add(model)
    }
  }
  await add(readModel(repositories, name))
  return hash.digest('hex').slice(0, 12)
}

/** Steps that are built in need no folder. */
function found(repositories: Repositories, name: string): RepositoryModel | undefined {
  try {
    return readModel(repositories, name)
  } catch (error) {
    if (error instanceof ModelNotFoundError) return undefined
    throw error
  }
}
