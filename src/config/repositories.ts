import { join } from 'node:path'
import type { PipelineConfig } from './pipeline.js'

/** Folder of the mirrors of repositories in object stores. */
export function mirrorDirOf({ models, store }: PipelineConfig): string {
  return models.mirror.path ?? join(store.path, 'repositories')
}

/** The same settings, whose repositories lie elsewhere. @param folderOf - of each. */
export function withRepositories(
  config: PipelineConfig,
  folderOf: (repository: string) => string,
): PipelineConfig {
  const { repository } = config.models
  const moved = typeof repository === 'string' ? folderOf(repository) : repository.map(folderOf)
  return { ...config, models: { ...config.models, repository: moved } }
}
