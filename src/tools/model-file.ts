import { basename, dirname, resolve } from 'node:path'
import { autoComplete } from '../repository/auto-complete.js'
import { ModelConfigError } from '../repository/errors.js'
import { labelsOfMetadata } from '../repository/labels.js'
import { emptyModelConfig } from '../repository/model-config.js'
import { readModel } from '../repository/model-definition.js'
import { readOnnxFile } from '../repository/onnx-file.js'
import { type OnnxModel, openOnnxModel } from '../repository/onnx-model.js'
import type { Repositories } from '../repository/repository-files.js'

/** A model file without a repository around it. @throws ModelInvalidError, SystemLimitError */
export function modelOfFile(file: string): OnnxModel {
  const path = resolve(file)
  const stem = basename(path).replace(/\.onnx$/, '')
  const name = (stem === 'model' ? basename(dirname(dirname(path))) : stem).replace(/[^A-Za-z0-9_.-]/g, '_')
  const onnx = readOnnxFile(path)
  const { labels, problem } = labelsOfMetadata(onnx.metadata)
  return {
    name,
    version: '1',
    path,
    config: autoComplete(emptyModelConfig, name, onnx),
    configuredMaxBatchSize: undefined,
    onnx,
    labels,
    labelsFrom: 'model metadata',
    warnings: problem === undefined ? [] : [problem],
  }
}

/**
 * A model of the repositories that has an ONNX file.
 *
 * @param done - what is to be done with it: `split`, `transformed`.
 * @throws ModelNotFoundError, ModelConfigError, ModelInvalidError, ModelLabelsError, SystemLimitError
 */
export function onnxModelNamed(repositories: Repositories, name: string, done: string): OnnxModel {
  const entry = readModel(repositories, name)
  if (entry.backend !== 'onnxruntime')
    throw new ModelConfigError(
      `model "${name}" is a ${entry.backend} model`,
      `Only ONNX models can be ${done}.`,
    )
  return openOnnxModel(entry)
}
