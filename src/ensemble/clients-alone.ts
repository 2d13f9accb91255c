import { knownOutputs } from '../repository/match-tensors.js'
import type { RepositoryModel } from '../repository/model-definition.js'
import type { OnnxModel } from '../repository/onnx-model.js'
import type { Repositories } from '../repository/repository-files.js'
import type { ModelTensor } from '../tensors/tensor.js'
import { readEnsemble } from './ensemble-graph.js'

/** Corners, score, class, and the number of the picture. */
const widestBox = 7

/** What is looked at of a model file to find out whom it is for. */
type ClientModel = Readonly<
  Pick<OnnxModel, 'config'> & { onnx: Readonly<Pick<OnnxModel['onnx'], 'inputs' | 'outputs'>> }
>

/**
 * Whether a model that cameras cannot use was never made for them: it takes no picture, or gives one row or one map for each, as
 * classifiers and segmentation do. In doubt it is for cameras, so that a setting that is missing is told as a fault.
 */
export function isForClientsAlone({ config, onnx }: ClientModel): boolean {
  if (Object.keys(config.parameters).some((key) => key.startsWith('gantry.head'))) return false
  const pictures = onnx.inputs.filter(isPicture)
  const outputs = knownOutputs(config, onnx)
  return pictures.every((picture) =>
    outputs.every((output) => isOneRow(output, picture, outputs.length === 1) || isMap(output, picture)),
  )
}

/** The same of an ensemble that can be read: cameras enter at a letterbox, and get the boxes of a head. */
export function isEnsembleForClientsAlone(repositories: Repositories, entry: RepositoryModel): boolean {
  return !readEnsemble(repositories, entry).steps.some(
    ({ backend }) => backend === 'letterbox' || backend === 'detection_head',
  )
}

/** Height and width in two of four sizes, or in two of three where the third is that of colours. */
function isPicture({ shape }: ModelTensor): boolean {
  return shape.length === 4 || (shape.length === 3 && (shape[0] === 3 || shape[2] === 3))
}

/** `[N, 1000]`, `[N, 1000, 1, 1]` or `[N]` of pictures `[N, ...]`; rows of boxes have a number of their own. */
function isOneRow({ shape }: ModelTensor, picture: ModelTensor, isOnly: boolean): boolean {
  const [batch, ...others] = shape
  const widths = others.filter((size) => size !== 1)
  if (widths.length > 1) return false
  if (isTold(batch)) return batch === picture.shape[0]
  // It may be that of pictures or of boxes, which are few numbers wide and have scores beside them.
  return isOnly && typeof widths[0] === 'number' && widths[0] > widestBox && !isTold(picture.shape[0])
}

/** As high and as wide as the picture itself, whichever way round the layouts are. */
function isMap({ shape }: ModelTensor, picture: ModelTensor): boolean {
  if (shape.length !== 4 && shape.length !== 3) return false
  const sides = picture.shape.at(-1) === 3 ? picture.shape.slice(-3, -1) : picture.shape.slice(-2)
  if (!sides.every(isTold)) return false
  return [shape.slice(-2), shape.slice(-3, -1)].some((own) => String(own) === String(sides))
}

/** A size without a name is any. */
function isTold(size: number | string | undefined): boolean {
  return size !== undefined && size !== '' && size !== '?'
}
