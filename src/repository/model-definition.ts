import { statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { byTrueName, isThere } from '../lifecycle/system-limit.js'
import { filesDirOf } from './borrowed-files.js'
import type { Audience } from './config-rules.js'
import { ModelConfigError, ModelNotFoundError } from './errors.js'
import { gpuModelOf } from './gpu-model.js'
import type { ModelConfig } from './model-config.js'
import { parseModelConfigJson } from './model-config-json.js'
import { readModelConfig } from './model-config-text.js'
import {
  findFolder,
  type FolderPrint,
  isModelName,
  type ModelFolder,
  printModel,
  type Repositories,
  repositoryWith,
} from './repository-files.js'
import { backendOf, checkSupported, knownBackend } from './supported-config.js'
import { versionsIn } from './version-policy.js'

/** Of a client's, in characters. It is read by the loop that serves; an ensemble of a hundred steps has a tenth of it. */
const maxSentConfigLength = 256 * 1024

/** A model of a repository, `<repository>/<name>/[config.pbtxt] [labels] <version>/model.onnx`, as it is read; nothing of it runs yet. */
export type RepositoryModel = Readonly<{
  name: string
  folder: ModelFolder
  /** Holds versions, labels and data: that of the folder, or of the model in `gantry.files_of`. */
  filesDir: string
  /** That the configuration asks for; ONNX Runtime where it asks for none. */
  backend: string
  /** As written, with what an absent number means where that is not 0; nothing else is filled in. */
  config: ModelConfig
  /** Versions that the policy serves, lowest first. */
  versions: readonly number[]
  /** Versions that the policy names, and nobody put there. */
  absentVersions: readonly number[]
  /** Settings that are read and have no effect, and versions that are not there. */
  warnings: readonly string[]
}>

/** A model as the model server follows it. */
export type ModelDefinition = RepositoryModel &
  Readonly<{
    /** What the folder had before a model file was read. */
    print: FolderPrint
    /** A client gave the configuration. */
    overridden: boolean
  }>

/**
 * Reads a model's folder and configuration; the model file itself is not opened.
 *
 * @param audience - who runs it: some fields are for API clients, or for cameras, alone.
 * @throws ModelNotFoundError, ModelConfigError; SystemLimitError when something may not, or cannot now, be read
 */
export function readModel(
  repositories: Repositories,
  name: string,
  audience: Audience = 'cameras',
): RepositoryModel {
  return byName(join(repositoryWith(repositories, name), name), () =>
    withVersions(readConfig(findFolder(repositories, name), audience)),
  )
}

/**
 * Reads the folder of a model for API clients.
 *
 * @param configJson - replaces `config.pbtxt`.
 * @throws ModelConfigError; SystemLimitError, and what else the file system throws
 */
export function readDefinition(folder: ModelFolder, configJson?: string): ModelDefinition {
  return byName(folder.dir, () => {
    const model = readConfig(folder, 'server', configJson)
    // What changes while it is loaded is seen by a second look.
    const print = printModel(folder, model.filesDir)
    return { ...withVersions(model), print, overridden: configJson !== undefined }
  })
}

/** What the folder of a model would serve; version 1 where that cannot be told. */
export function versionsToServe(folder: ModelFolder): readonly number[] {
  try {
    const { versions } = readDefinition(folder)
    return versions.length === 0 ? [1] : versions
  } catch {
    return [1]
  }
}

function byName<T>(dir: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw byTrueName(`${dir} cannot be read`, error)
  }
}

type Configured = Omit<RepositoryModel, 'versions' | 'absentVersions'>

function readConfig(folder: ModelFolder, audience: Audience, configJson?: string): Configured {
  const { name, repository, configFile: file } = folder
  const source = configJson === undefined ? file : `configuration of model '${name}'`
  if (configJson !== undefined && configJson.length > maxSentConfigLength)
    throw new ModelConfigError(
      `${source} has more than ${maxSentConfigLength} characters`,
      'Put a larger one into config.pbtxt.',
    )
  const written = configJson === undefined ? readModelConfig(file) : parseModelConfigJson(configJson, source)
  if (written.name !== undefined && written.name !== '' && written.name !== name)
    throw new ModelConfigError(
      `${source}: unexpected directory name '${name}' for model '${written.name}', directory name must equal model name`,
      'Give both the same name, or leave the name out.',
    )
  const config = spelledOut({ ...written, name })
  checkFileNames(config, source)
  if (audience === 'cameras') knownBackend(config, source)
  const warnings = checkSupported(config, source, audience)
  checkGpuModel(folder, config, source)
  const filesDir = filesDirOf({ repositoryDir: repository, name, config, source })
  return { name, folder, filesDir, backend: backendOf(config), config, warnings }
}

function withVersions(model: Configured): RepositoryModel {
  const { filesDir, config, backend, warnings } = model
  const { served, absent, notes } = versionsIn(filesDir, config, ['onnxruntime', 'js'].includes(backend))
  return { ...model, versions: served, absentVersions: absent, warnings: [...warnings, ...notes] }
}

/** So that a client that sends back what it was told asks for the same: there, a number that is absent is 0. */
function spelledOut(config: ModelConfig): ModelConfig {
  const { version_policy: policy, ensemble_scheduling: ensemble } = config
  return {
    ...config,
    ...(policy?.latest === undefined
      ? {}
      : { version_policy: { latest: { num_versions: 1, ...policy.latest } } }),
    ...(ensemble === undefined
      ? {}
      : {
          ensemble_scheduling: {
            ...ensemble,
            step: ensemble.step.map((step) => ({ ...step, model_version: step.model_version ?? -1 })),
          },
        }),
  }
}

/** The folder of a version; it need not be there for a model without a file. */
export function versionDirOf({ filesDir }: Pick<RepositoryModel, 'filesDir'>, version: number): string {
  return join(filesDir, String(version))
}

/**
 * Path of the model file of a version. A folder of that name holds the model with its weights beside it.
 *
 * @param usual - names, one of which it has where the configuration gives none.
 * @throws ModelNotFoundError; SystemLimitError where the folder may not be read
 */
export function modelFileIn(
  versionDir: string,
  { name = '', default_model_filename: given = '' }: ModelConfig,
  usual: readonly [string, ...string[]] = ['model.onnx'],
): string {
  const paths = (given === '' ? usual : [given]).map((file) => join(versionDir, file))
  const path = paths.find((each) => isThere(each))
  if (path === undefined)
    throw new ModelNotFoundError(
      `model "${name}" has no file ${paths.join(' or ')}`,
      'Put the model there, or name the file in default_model_filename.',
    )
  return statSync(path).isDirectory() ? join(path, usual[0]) : path
}

/** Models an ensemble runs, each once. */
export function stepsOf({ ensemble_scheduling }: ModelConfig): readonly string[] {
  return [...new Set((ensemble_scheduling?.step ?? []).map((step) => step.model_name))]
}

/** Models that must be loaded before this one: the steps of an ensemble, and what takes the place of one on a GPU. */
export function needsOfConfig(config: ModelConfig): readonly string[] {
  const gpuModel = gpuModelOf(config)
  return gpuModel === undefined ? stepsOf(config) : [...stepsOf(config), gpuModel]
}

/** Models that do nothing but stand in for steps of ensembles on a GPU. @param named - to be loaded all the same. */
export function onlyForGpus(
  models: readonly Pick<RepositoryModel, 'config'>[],
  named: readonly string[],
): ReadonlySet<string> {
  const others = new Set([...named, ...models.flatMap(({ config }) => stepsOf(config))])
  return new Set(
    models.flatMap(({ config }) => gpuModelOf(config) ?? []).filter((gpuModel) => !others.has(gpuModel)),
  )
}

/** The name is told wrong also where there is no GPU. @throws ModelConfigError */
function checkGpuModel({ name, repositories }: ModelFolder, config: ModelConfig, source: string): void {
  const gpuModel = gpuModelOf(config)
  if (
    gpuModel === undefined ||
    (gpuModel !== name &&
      isModelName(gpuModel) &&
      isThere(join(repositoryWith(repositories, gpuModel), gpuModel)))
  )
    return
  throw new ModelConfigError(
    `${source}: gantry.gpu_model is "${gpuModel}", which is no other model of ${[repositories].flat().length > 1 ? 'these repositories' : 'this repository'}`,
    'Name a model with the tensors and labels of the step it takes the place of, or leave the parameter out.',
  )
}

/** In a folder of the model, and no way out of it. @throws ModelConfigError */
function checkFileNames({ default_model_filename, output }: ModelConfig, source: string): void {
  const names = [
    ['default_model_filename', default_model_filename],
    ...output.map(({ label_filename }) => ['label_filename', label_filename] as const),
  ] as const
  for (const [field, name = ''] of names)
    if (basename(name) !== name || ['.', '..'].includes(name) || name.includes('\0'))
      throw new ModelConfigError(
        `${source}: ${field} "${name}" is not a plain file name`,
        field === 'label_filename'
          ? 'Name a file in the model folder.'
          : 'Name a file in the version folder.',
      )
}
