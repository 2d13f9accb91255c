import { repositoriesOf } from '../../config/load.js'
import type { PipelineConfig } from '../../config/pipeline.js'
import { mirrorDirOf, withRepositories } from '../../config/repositories.js'
import { isS3Url } from '../../config/s3-url.js'
import { RepositoryMirrors, type RepositoryMirrorsOptions } from './repository-mirrors.js'

/** Settings whose repositories are folders, all of them. */
export type MirroredConfig = Readonly<{ config: PipelineConfig; mirrors: RepositoryMirrors }>

/** Whether settings name a repository in an object store. */
export function hasStoredRepository(config: PipelineConfig): boolean {
  return repositoriesOf(config).some(isS3Url)
}

/**
 * Makes mirrors of the repositories that lie in object stores; nothing is fetched yet.
 *
 * @throws ObjectStoreError
 */
export function mirrorsOf(
  config: PipelineConfig,
  options: Omit<RepositoryMirrorsOptions, 'urls' | 'mirror' | 'dir'>,
): MirroredConfig {
  const urls = repositoriesOf(config).filter(isS3Url)
  const mirrors = new RepositoryMirrors({
    ...options,
    urls,
    mirror: config.models.mirror,
    dir: mirrorDirOf(config),
  })
  const folderOf = (repository: string) => (isS3Url(repository) ? mirrors.folderOf(repository) : repository)
  return { config: withRepositories(config, folderOf), mirrors }
}
