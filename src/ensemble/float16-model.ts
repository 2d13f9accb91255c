import { ModelConfigError } from '../repository/errors.js'
import { checkSameLabels, float16ModelOf } from '../repository/gpu-model.js'
import { readModel } from '../repository/model-definition.js'
import { type OnnxModel, openOnnxModel } from '../repository/onnx-model.js'
import type { Repositories } from '../repository/repository-files.js'
import { describeTensor } from '../tensors/tensor.js'

/**
 * The model in float16 that a detector names: from outside the same one. It is looked at where there is no GPU as well.
 *
 * @throws ModelNotFoundError, ModelInvalidError, ModelLabelsError, ModelConfigError where it has other tensors or labels
 */
export function openFloat16Model(
  repositories: Repositories,
  detector: OnnxModel | undefined,
): OnnxModel | undefined {
  if (detector === undefined) return undefined
  const name = float16ModelOf(detector.config)
  if (name === undefined) return undefined
  const of = `model "${detector.name}": gantry.float16_model`
  if (name === detector.name)
    throw new ModelConfigError(`${of} is the model itself`, 'Name the model in float16, or leave it out.')
  const float16 = openOnnxModel(readModel(repositories, name))
  const [own, other] = [tensorsOf(detector), tensorsOf(float16)]
  if (own !== other)
    throw new ModelConfigError(
      `${of} has other tensors: "${detector.name}" has ${own}; "${name}" has ${other}`,
      'Only what is computed inside may be float16: export it with inputs and outputs as those of the model in float32.',
    )
  checkSameLabels(
    of,
    { name: detector.name, labels: detector.labels ?? [] },
    { name, labels: float16.labels ?? [] },
  )
  return float16
}

/** With the sizes that the configuration gives; those that are free have no name. */
function tensorsOf({ config, onnx }: OnnxModel): string {
  const configured = [...config.input, ...config.output]
  const tensors = [...onnx.inputs, ...onnx.outputs].map(({ name, type, shape }) => {
    const dims = configured.find((each) => each.name === name)?.dims
    const sizes = shape.map((size, index) => dims?.at(index - shape.length) ?? size)
    const known = sizes.map((size) => (typeof size === 'number' && size > 0 ? size : '?'))
    return `"${name}" ${describeTensor({ name, type, shape: known })}`
  })
  return tensors.join(', ')
}
