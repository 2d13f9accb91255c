import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { byTrueName, isThere } from '../lifecycle/system-limit.js'
import { autoComplete } from './auto-complete.js'
import { filesDirOf } from './borrowed-files.js'
import type { Audience } from './config-rules.js'
import { ModelConfigError, ModelNotFoundError } from './errors.js'
import { labelsFromMetadata, readLabelsFile } from './labels.js'
import { matchTensors } from './match-tensors.js'
import { emptyModelConfig, type ModelConfig } from './model-config.js'
import { parseModelConfig } from './model-config-text.js'
import { isModelName } from './model-name.js'
import { type OnnxInfo, readOnnxFile } from './onnx-file.js'
import { reasonOf, repositoryError } from './repository-folder.js'
import { type Backend, backendOf, checkSupported } from './supported-config.js'
import { versionsIn } from './version-policy.js'

/** A folder of the repository: `<repository>/<name>/[config.pbtxt] [labels] <version>/model.onnx`. */
export type ModelEntry = Readonly<{
  name: string
  dir: string
  /** Holds versions, labels and data: `dir`, or that of the model in `gantry.files_of`. */
  filesDir: string
  backend: Backend
  /** As written; nothing is filled in. */
  config: ModelConfig
  hasConfigFile: boolean
  /** Versions that the version policy serves, lowest first. */
  versions: readonly number[]
  /** Settings that were read and have no effect. */
  warnings: readonly string[]
}>

/** One version of an ONNX model, checked against its configuration. */
export type OnnxModel = Readonly<{
  name: string
  version: string
  path: string
  /** With what the model file adds. */
  config: ModelConfig
  /** Batch size the configuration allows; `undefined` if it says nothing. */
  configuredMaxBatchSize: number | undefined
  onnx: OnnxInfo
  labels: readonly string[] | undefined
  /** File name, `model metadata`, or empty. */
  labelsFrom: string
  warnings: readonly string[]
}>

/** Names of the folders that look like models, sorted. @throws ModelNotFoundError if the repository itself cannot be read. */
export function modelNames(repositoryDir: string): readonly string[] {
  try {
    return readdirSync(repositoryDir, { withFileTypes: true })
      .filter(
        (entry) =>
          isModelName(entry.name) &&
          statSync(join(repositoryDir, entry.name), { throwIfNoEntry: false })?.isDirectory() === true,
      )
      .map((entry) => entry.name)
      .sort()
  } catch (error) {
    throw repositoryError(new Map([[repositoryDir, reasonOf(repositoryDir, error)]]))
  }
}

/** A repository, or several: of models with one name the first counts. */
export type Repositories = string | readonly string[]

/** The first of several repositories that has a model of that name; the first of all where none has it. */
export function repositoryWith(repositories: Repositories, name: string): string {
  const all = [repositories].flat()
  const found = all.find((dir) => isModelName(name) && existsSync(join(dir, name)))
  return found ?? all[0] ?? ''
}

/** The repositories, the one that has the model first: its steps are looked for there before the others. */
export function repositoriesFrom(repositories: readonly string[], name: string): readonly string[] {
  const first = repositoryWith(repositories, name)
  return [first, ...repositories.filter((dir) => dir !== first)]
}

/**
 * Reads a model's folder and configuration; the model file itself is not opened.
 *
 * @throws ModelNotFoundError, ModelConfigError; SystemLimitError when something may not, or cannot now, be read
 */
export function readModelEntry(
  repositoryDir: string,
  name: string,
  audience: Audience = 'cameras',
): ModelEntry {
  try {
    return readEntry(repositoryDir, name, audience)
  } catch (error) {
    throw byTrueName(`model "${name}" of ${repositoryDir} cannot be read`, error)
  }
}

function readEntry(repositoryDir: string, name: string, audience: Audience): ModelEntry {
  const dir = join(repositoryDir, name)
  if (!isModelName(name) || !isThere(dir)) {
    const names = modelNames(repositoryDir)
    throw new ModelNotFoundError(
      `model "${name}" is not in ${repositoryDir}`,
      names.length === 0 ? 'The repository is empty.' : `It has: ${names.join(', ')}.`,
    )
  }
  const file = join(dir, 'config.pbtxt')
  const hasConfigFile = isThere(file)
  const config = hasConfigFile ? parseModelConfig(readFileSync(file, 'utf8'), file) : emptyModelConfig
  if (config.name !== undefined && config.name !== '' && config.name !== name)
    throw new ModelConfigError(
      `${file}: name "${config.name}" is not the name of its folder, "${name}"`,
      'Give both the same name, or leave the name out.',
    )
  const backend = backendOf(config, file)
  const warnings = checkSupported({ ...config, name }, file, audience)
  const filesDir = filesDirOf({ repositoryDir, name, config, source: file })
  const versions = versionsIn(filesDir, { ...config, name }, ['onnxruntime', 'js'].includes(backend))
  return {
    name,
    dir,
    filesDir,
    backend,
    config,
    hasConfigFile,
    versions: versions.served,
    warnings: [...warnings, ...versions.notes],
  }
}

/**
 * Opens one version of an ONNX model: reads what the file says of its tensors, without running it, and its labels.
 *
 * @param version - the highest served one without it, or with -1.
 * @throws ModelNotFoundError, ModelConfigError, ModelInvalidError, ModelLabelsError, SystemLimitError
 */
export function openOnnxModel(entry: ModelEntry, version = -1): OnnxModel {
  try {
    return openVersion(entry, version)
  } catch (error) {
    throw byTrueName(`model "${entry.name}" cannot be read`, error)
  }
}

function openVersion(entry: ModelEntry, version: number): OnnxModel {
  const chosen = version === -1 ? entry.versions.at(-1) : entry.versions.find((served) => served === version)
  if (chosen === undefined)
    throw new ModelNotFoundError(
      version === -1
        ? `model "${entry.name}" has no version to serve`
        : `model "${entry.name}" has no version ${version}`,
      `Put the model at ${join(entry.filesDir, String(version === -1 ? 1 : version), modelFile(entry))}; version folders are numbers from 1.`,
    )
  const path = onnxPath(entry, chosen)
  const onnx = readOnnxFile(path)
  const config = autoComplete(entry.config, entry.name, onnx)
  matchTensors(config, onnx, entry.hasConfigFile ? join(entry.dir, 'config.pbtxt') : path)
  const limit = entry.config.max_batch_size ?? 0
  return {
    name: entry.name,
    version: String(chosen),
    path,
    config,
    configuredMaxBatchSize: limit > 0 ? limit : undefined,
    onnx,
    ...labelsOf(entry, onnx),
    warnings: entry.warnings,
  }
}

function modelFile(entry: ModelEntry): string {
  const name = entry.config.default_model_filename ?? ''
  if (name !== '' && basename(name) !== name)
    throw new ModelConfigError(
      `${join(entry.dir, 'config.pbtxt')}: default_model_filename "${name}" is not a plain file name`,
      'Name a file in the version folder.',
    )
  return name === '' ? 'model.onnx' : name
}

/** The model file; a folder of that name holds a model with its weights beside it. */
function onnxPath(entry: ModelEntry, version: number): string {
  const path = join(entry.filesDir, String(version), modelFile(entry))
  if (!isThere(path))
    throw new ModelNotFoundError(
      `model "${entry.name}" has no file ${path}`,
      'Put the model there, or name the file in default_model_filename.',
    )
  return statSync(path).isDirectory() ? join(path, 'model.onnx') : path
}

function labelsOf(entry: ModelEntry, onnx: OnnxInfo): Pick<OnnxModel, 'labels' | 'labelsFrom'> {
  const named = entry.config.output.map((output) => output.label_filename ?? '').find((name) => name !== '')
  if (named !== undefined && basename(named) !== named)
    throw new ModelConfigError(
      `${join(entry.dir, 'config.pbtxt')}: label_filename "${named}" is not a plain file name`,
      'Name a file in the model folder.',
    )
  const file = named ?? (isThere(join(entry.filesDir, 'labels.txt')) ? 'labels.txt' : undefined)
  if (file !== undefined) return { labels: readLabelsFile(join(entry.filesDir, file)), labelsFrom: file }
  const labels = labelsFromMetadata(onnx.metadata)
  return { labels, labelsFrom: labels === undefined ? '' : 'model metadata' }
}
