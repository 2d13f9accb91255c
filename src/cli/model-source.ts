import { resolve } from 'node:path'
import type { InferenceConfig } from '../config/inference.js'
import { type LoadedPipeline, loadPipeline, repositoriesOf } from '../config/load.js'
import { installation } from '../lifecycle/installation.js'
import type { Terminal } from './terminal.js'

/** Where a command finds models: a folder that is named, else a pipeline file, else this installation. */
export type ModelPlace = Readonly<{ config?: string; repository?: string }>

/** Where models are, and how they run. */
export type ModelSource = Readonly<{
  repositories: readonly string[]
  inference: InferenceConfig
  /** Whether steps may run code of the repositories. */
  allowJsBackends: boolean
}>

/** @throws ConfigError; ModelNotFoundError if a repository of the pipeline file cannot be read, also one behind the first */
export async function repositoriesFor(
  { config, repository }: ModelPlace,
  { env }: Terminal,
): Promise<readonly string[]> {
  if (repository !== undefined || config === undefined) return [folderOf(repository)]
  const repositories = repositoriesOf(loadPipeline(config, { env }).config)
  const { checkRepositories } = await import('../repository/repository-folder.js')
  await checkRepositories(repositories)
  return repositories
}

/**
 * For commands that run models: how they do is said by the settings, also where no pipeline file is named.
 *
 * @param repository - named in place of those of the pipeline file.
 */
export function modelSource({ config, path }: LoadedPipeline, repository: string | undefined): ModelSource {
  const { inference, models } = config
  const repositories =
    repository !== undefined || path === undefined ? [folderOf(repository)] : repositoriesOf(config)
  return { repositories, inference, allowJsBackends: models.allowJsBackends }
}

function folderOf(repository: string | undefined): string {
  return resolve(repository ?? resolve(installation, 'models'))
}
