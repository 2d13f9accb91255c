import { resolve } from 'node:path'
import type { InferenceConfig } from '../config/inference.js'
import { type LoadedPipeline, loadPipeline, repositoriesOf } from '../config/load.js'
import { isMirror } from '../buckets/mirror/mirror-folder.js'
import { isS3Url } from '../config/s3-url.js'
import { repositoryWith } from '../repository/repository-files.js'
import { installation } from '../lifecycle/installation.js'
import type { CommandContext } from './command-context.js'
import { UsageError } from './failure.js'
import { withFetchedRepositories } from './stored-repositories.js'

/** Where a command finds models: a folder that is named, else a pipeline file, else this installation. */
export type ModelPlace = Readonly<{ config?: string; repository?: string }>

/** Where models are, and how they run. */
export type ModelSource = Readonly<{
  repositories: readonly string[]
  inference: InferenceConfig
  /** Whether steps may run code of the repositories. */
  allowJsBackends: boolean
}>

/** @throws ConfigError; ObjectStoreError; ModelNotFoundError if a repository of the pipeline file cannot be read, also one behind the first */
export async function repositoriesFor(
  { config, repository }: ModelPlace,
  context: Pick<CommandContext, 'terminal' | 'signals'>,
): Promise<readonly string[]> {
  if (repository !== undefined || config === undefined) return [folderOf(repository)]
  const loaded = loadPipeline(config, { env: context.terminal.env })
  const repositories = repositoriesOf((await withFetchedRepositories(loaded, context)).config)
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

/**
 * The repository of a model, which gets what is made of the model.
 *
 * @throws UsageError for one that lies in an object store: what is fetched of it is never written
 */
export function homeOf(repositories: readonly string[], model: string): string {
  const home = repositoryWith(repositories, model)
  if (!isMirror(home)) return home
  throw new UsageError(
    `model "${model}" is of an object store, into which nothing is written`,
    'Add --out FOLDER, and upload from there what is to be served.',
  )
}

/** @throws UsageError for an object store */
function folderOf(repository: string | undefined): string {
  if (repository !== undefined && isS3Url(repository))
    throw new UsageError(
      `-r is "${repository}", and takes a folder`,
      'Write it as models.repository of a pipeline file, and name that with -c.',
    )
  return resolve(repository ?? resolve(installation, 'models'))
}
