import type { ModelConfig, ModelInput, ModelOutput } from '../repository/model-config.js'
import { configOfDatatype, datatypeOfConfig } from '../tensors/element-type.js'
import type { TensorSpec } from '../tensors/tensor.js'

/** A configuration with the tensors a backend gives itself, without the batch dimension where there is one. */
export function configTensors(
  config: ModelConfig,
  backend: string,
  tensors: Readonly<{ inputs: readonly TensorSpec[]; outputs: readonly TensorSpec[] }>,
): ModelConfig {
  const batched = (config.max_batch_size ?? 0) > 0
  const written = ({ name, datatype, shape, optional }: TensorSpec): ModelInput & ModelOutput => ({
    name,
    data_type: configOfDatatype(datatype),
    dims: batched ? shape.slice(1) : shape,
    ...(optional === true ? { optional } : {}),
  })
  const keepLabels = (output: ModelInput & ModelOutput): ModelOutput => {
    const label = config.output.find(({ name }) => name === output.name)?.label_filename
    return label === undefined || label === '' ? output : { ...output, label_filename: label }
  }
  return {
    ...config,
    backend,
    max_batch_size: config.max_batch_size ?? 0,
    input: tensors.inputs.map(written),
    output: tensors.outputs.map(written).map(keepLabels),
  }
}

/** The tensors a configuration lists, with the batch dimension where there is one. */
export function specsOf(
  config: ModelConfig,
  tensors: readonly (ModelInput | ModelOutput)[],
): readonly TensorSpec[] {
  const batched = (config.max_batch_size ?? 0) > 0
  return tensors.flatMap((tensor) => {
    const datatype = datatypeOfConfig(tensor.data_type)
    if (datatype === undefined) return []
    const shape = batched ? [-1, ...tensor.dims] : tensor.dims
    const optional = 'optional' in tensor && tensor.optional === true
    return [{ name: tensor.name, datatype, shape, ...(optional ? { optional } : {}) }]
  })
}
