import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import { byTrueName } from '../lifecycle/system-limit.js'
import { autoComplete } from './auto-complete.js'
import { ModelNotFoundError } from './errors.js'
import { labelsOfMetadata, readLabelsFile } from './labels.js'
import { matchTensors } from './match-tensors.js'
import type { ModelConfig } from './model-config.js'
import { modelFileIn, type RepositoryModel, versionDirOf } from './model-definition.js'
import { type OnnxInfo, readOnnxFile } from './onnx-file.js'
import { labelFiles } from './output-labels.js'

/** A model file, and the configuration with what it adds: they speak of the same tensors. */
export type OnnxVersion = Readonly<{ path: string; onnx: OnnxInfo; config: ModelConfig }>

/** One version of an ONNX model of a repository, checked against its configuration. */
export type OnnxModel = OnnxVersion &
  Readonly<{
    name: string
    version: string
    /** Batch size the configuration allows; `undefined` if it says nothing. */
    configuredMaxBatchSize: number | undefined
    labels: readonly string[] | undefined
    /** File name, `model metadata`, or empty. */
    labelsFrom: string
    warnings: readonly string[]
  }>

/**
 * Reads what the model file of a version says of its tensors, without running it.
 *
 * @param config - with the name of the model.
 * @param source - the file with the configuration, for people; the model file where there is none.
 * @throws ModelNotFoundError, ModelInvalidError, SystemLimitError
 */
export function openOnnxVersion(versionDir: string, config: ModelConfig, source?: string): OnnxVersion {
  const path = modelFileIn(versionDir, config)
  const onnx = readOnnxFile(path)
  const completed = autoComplete(config, config.name ?? '', onnx)
  matchTensors(completed, onnx, source ?? path)
  return { path, onnx, config: completed }
}

/**
 * Opens one version of a model of a repository, with its labels.
 *
 * @param version - the highest served one without it, or with -1.
 * @throws ModelNotFoundError, ModelInvalidError, ModelLabelsError, SystemLimitError
 */
export function openOnnxModel(model: RepositoryModel, version = -1): OnnxModel {
  try {
    return openServed(model, version)
  } catch (error) {
    throw byTrueName(`model "${model.name}" cannot be read`, error)
  }
}

function openServed(model: RepositoryModel, version: number): OnnxModel {
  const { name, versions, config: written, filesDir, warnings } = model
  const chosen = version === -1 ? versions.at(-1) : versions.find((served) => served === version)
  if (chosen === undefined)
    throw new ModelNotFoundError(
      version === -1
        ? `model "${name}" has no version to serve`
        : `model "${name}" has no version ${version}`,
      `Put the model at ${versionDirOf(model, version === -1 ? 1 : version)}/${written.default_model_filename || 'model.onnx'}; version folders are numbers from 1.`,
    )
  const { configFile } = model.folder
  const source = existsSync(configFile) ? configFile : undefined
  const opened = openOnnxVersion(versionDirOf(model, chosen), written, source)
  const limit = written.max_batch_size ?? 0
  const [file] = labelFiles(opened.config, filesDir).values()
  const { labels, problem } =
    file === undefined ? labelsOfMetadata(opened.onnx.metadata) : { labels: readLabelsFile(file) }
  return {
    ...opened,
    name,
    version: String(chosen),
    configuredMaxBatchSize: limit > 0 ? limit : undefined,
    labels,
    labelsFrom: file !== undefined ? basename(file) : labels === undefined ? '' : 'model metadata',
    warnings: problem === undefined ? warnings : [...warnings, `model "${name}": ${problem}`],
  }
}
