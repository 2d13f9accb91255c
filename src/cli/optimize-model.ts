import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { findCameraModel } from '../ensemble/camera-model.js'
import { ModelConfigError } from '../repository/errors.js'
import { readModel } from '../repository/model-definition.js'
import type { OnnxModel } from '../repository/onnx-model.js'
import { modelOfFile, onnxModelNamed } from '../tools/model-file.js'
import type { ResultPlace } from '../tools/optimize/write-result.js'
import { UsageError } from './failure.js'
import { homeOf } from './model-source.js'

/** What is searched for the best way to run, and where the result goes. */
export type OptimizedModel = Readonly<{ model: OnnxModel; place: ResultPlace }>

/**
 * A model by its name, its file, or the name of an ensemble for cameras, whose detector it then is.
 *
 * @throws UsageError; ModelNotFoundError, ModelConfigError, ModelInvalidError, ModelLabelsError
 */
export function optimizedModel(
  subject: string,
  repositories: readonly string[],
  { out, name }: Readonly<{ out?: string; name?: string }>,
): OptimizedModel {
  if (existsSync(subject) && statSync(subject).isFile()) {
    if (out === undefined)
      throw new UsageError('a file needs a place for the result', 'Add --out FOLDER, a model repository.')
    const model = modelOfFile(subject)
    return { model, place: { repository: resolve(out), name: nameOf(name, model) } }
  }
  const repository = resolve(out ?? homeOf(repositories, subject))
  if (readModel(repositories, subject).backend !== 'ensemble') {
    const model = onnxModelNamed(repositories, subject, 'searched for settings')
    return { model, place: { repository, name: nameOf(name, model) } }
  }
  const { detector, ensemble } = findCameraModel(repositories, subject)
  if (detector === undefined || ensemble === undefined)
    throw new ModelConfigError(
      `ensemble "${subject}" has no ONNX detector behind a letterbox`,
      'Name the ONNX model among its steps.',
    )
  return {
    model: detector,
    place: {
      repository,
      name: nameOf(name, detector),
      ensemble: { name: subject, config: ensemble.config, dir: ensemble.dir, detector: detector.name },
    },
  }
}

function nameOf(name: string | undefined, model: OnnxModel): string {
  const own = name ?? `${model.name}_optimized`
  if (/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/.test(own)) return own
  throw new UsageError(
    `"${own}" cannot be the name of a model`,
    'Give one of letters, digits, "_", "-" and "." with --name.',
  )
}
