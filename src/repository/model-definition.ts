import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { gpuModelOf } from './gpu-model.js'
import { filesDirOf } from './borrowed-files.js'
import { ModelConfigError } from './errors.js'
import { emptyModelConfig, type ModelConfig } from './model-config.js'
import { parseModelConfigJson } from './model-config-json.js'
import { parseModelConfig } from './model-config-text.js'
import { isModelName } from './model-name.js'
import { checkSupported } from './supported-config.js'
import { byTrueName, isThere } from '../lifecycle/system-limit.js'
import { versionsIn } from './version-policy.js'
import { isFileName, printModel, type FolderPrint, type ModelFolder } from './repository-files.js'

const maxConfigBytes = 4 * 1024 ** 2
/** Of a client's, in characters. It is read by the loop that serves; an ensemble of a hundred steps has a tenth of it. */
const maxSentConfigLength = 256 * 1024

/** A model as its folder, or a client, describes it; nothing of it runs yet. */
export type ModelDefinition = Readonly<{
  name: string
  folder: ModelFolder
  /** Holds versions, labels and data: that of the folder, or of the model in `gantry.files_of`. */
  filesDir: string
  /** As written, with what an absent number means where that is not 0; nothing else is filled in. */
  config: ModelConfig
  /** Versions that the policy serves, lowest first. */
  versions: readonly number[]
  /** Versions that the policy names, and nobody put there. */
  absentVersions: readonly number[]
  /** What the folder had before a model file was read. */
  print: FolderPrint
  /** A client gave the configuration. */
  overridden: boolean
  /** Settings that are read and have no effect, and versions that are not there. */
  warnings: readonly string[]
}>

/**
 * Reads the folder of a model.
 *
 * @param configJson - replaces `config.pbtxt`.
 * @throws ModelConfigError; SystemLimitError, and what else the file system throws
 */
export function readDefinition(folder: ModelFolder, configJson?: string): ModelDefinition {
  try {
    return definitionOf(folder, configJson)
  } catch (error) {
    throw byTrueName(`${folder.dir} cannot be read`, error)
  }
}

function definitionOf(folder: ModelFolder, configJson: string | undefined): ModelDefinition {
  const { name, configFile: file } = folder
  const source = configJson === undefined ? file : `configuration of model '${name}'`
  if (configJson !== undefined && configJson.length > maxSentConfigLength)
    throw new ModelConfigError(
      `${source} has more than ${maxSentConfigLength} characters`,
      'Put a larger one into config.pbtxt.',
    )
  const config = configJson === undefined ? configOfFile(file) : parseModelConfigJson(configJson, source)
  if (config.name !== undefined && config.name !== '' && config.name !== name)
    throw new ModelConfigError(
      `${source}: unexpected directory name '${name}' for model '${config.name}', directory name must equal model name`,
      'Give both the same name, or leave the name out.',
    )
  checkFileName(config, source)
  const warnings = checkSupported({ ...config, name }, source, 'server')
  checkGpuModel(folder, config, source)
  const filesDir = filesDirOf({ repositoryDir: folder.repository, name, config, source })
  // What changes while it is loaded is seen by a second look.
  const print = printModel(folder, filesDir)
  const { served, absent, notes } = versionsIn(filesDir, { ...config, name }, needsFile(config))
  return {
    name,
    folder,
    config: spelledOut({ ...config, name }),
    versions: served,
    absentVersions: absent,
    print,
    filesDir,
    overridden: configJson !== undefined,
    warnings: [...warnings, ...notes],
  }
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

/** The backend a configuration asks for; ONNX Runtime where it asks for none. */
export function backendName({ platform = '', backend = '', ensemble_scheduling }: ModelConfig): string {
  if (platform === 'ensemble' || ensemble_scheduling !== undefined) return 'ensemble'
  if (backend !== '') return backend
  return platform === '' || platform === 'onnxruntime_onnx' ? 'onnxruntime' : platform
}

/** Path of the model file of a version; a folder of that name holds a model with its weights beside it. */
export function modelFileOf({ filesDir, config }: ModelDefinition, version: number): string {
  const path = join(filesDir, String(version), config.default_model_filename || 'model.onnx')
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true ? join(path, 'model.onnx') : path
}

/** Models an ensemble runs, each once. */
export function stepsOf({ ensemble_scheduling }: ModelConfig): readonly string[] {
  return [...new Set((ensemble_scheduling?.step ?? []).map((step) => step.model_name))]
}

/** Models that must be loaded before this one: the steps of an ensemble, and what takes the place of one on a GPU. */
export function needsOf(config: ModelConfig): readonly string[] {
  const gpuModel = gpuModelOf(config)
  return gpuModel === undefined ? stepsOf(config) : [...stepsOf(config), gpuModel]
}

/** Models that do nothing but stand in for steps of ensembles on a GPU. @param named - to be loaded all the same. */
export function onlyForGpus(
  models: readonly Pick<ModelDefinition, 'config'>[],
  named: readonly string[],
): ReadonlySet<string> {
  const others = new Set([...named, ...models.flatMap(({ config }) => stepsOf(config))])
  return new Set(
    models.flatMap(({ config }) => gpuModelOf(config) ?? []).filter((gpuModel) => !others.has(gpuModel)),
  )
}

/** The name is told wrong also where there is no GPU. @throws ModelConfigError */
function checkGpuModel({ name, repository }: ModelFolder, config: ModelConfig, source: string): void {
  const gpuModel = gpuModelOf(config)
  if (
    gpuModel === undefined ||
    (gpuModel !== name && isModelName(gpuModel) && isThere(join(repository, gpuModel)))
  )
    return
  throw new ModelConfigError(
    `${source}: gantry.gpu_model is "${gpuModel}", which is no other model of this repository`,
    'Name a model with the tensors and labels of the step it takes the place of, or leave the parameter out.',
  )
}

function configOfFile(file: string): ModelConfig {
  if (!isThere(file)) return emptyModelConfig
  if (statSync(file).size > maxConfigBytes)
    throw new ModelConfigError(`${file} has more than ${maxConfigBytes} bytes`, 'It is no configuration.')
  return parseModelConfig(readFileSync(file, 'utf8'), file)
}

function checkFileName(config: ModelConfig, source: string): void {
  const names = [config.default_model_filename, ...config.output.map((output) => output.label_filename)]
  for (const name of names)
    if (name !== undefined && name !== '' && !isFileName(name))
      throw new ModelConfigError(`${source}: "${name}" is not a plain file name`, 'Name a file of the model.')
}

function needsFile(config: ModelConfig): boolean {
  return ['onnxruntime', 'js'].includes(backendName(config))
}
