import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { ModelConfigError } from './errors.js'
import { type ModelConfig, parameterOf } from './model-config.js'
import { readModelConfig } from './model-config-text.js'
import { isModelName } from './repository-files.js'

/** A model as far as its configuration says. */
export type ConfiguredModel = Readonly<{
  repositoryDir: string
  name: string
  config: ModelConfig
  /** Where the configuration is from, for errors. */
  source: string
}>

/**
 * Folder of a model's versions, labels and data: its own, or that of the model that `gantry.files_of` names, so that one file can
 * serve in two configurations.
 *
 * @throws ModelConfigError for a name that is no other model of the repository with files of its own.
 */
export function filesDirOf({ repositoryDir, name, config, source }: ConfiguredModel): string {
  const own = join(repositoryDir, name)
  const other = parameterOf(config, 'gantry.files_of')
  if (other === undefined) return own
  const wrong = (problem: string, hint: string) =>
    new ModelConfigError(`${source}: gantry.files_of is "${other}", ${problem}`, hint)
  const nameOne = 'Name another model of the same repository that has version folders.'
  if (other === name || !isModelName(other) || !isFolder(join(repositoryDir, other)))
    throw wrong('which is no other model of this repository', nameOne)
  if (readdirSync(own).some((entry) => /^[1-9]\d*$/.test(entry) && isFolder(join(own, entry))))
    throw wrong('but the model has version folders of its own', 'Leave out the one or the others.')
  if (
    parameterOf(readModelConfig(join(repositoryDir, other, 'config.pbtxt')), 'gantry.files_of') !== undefined
  )
    throw wrong('which has no files of its own', nameOne)
  return join(repositoryDir, other)
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}
