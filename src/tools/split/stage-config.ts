import type { ModelConfig, ModelInput, ModelOutput } from '../../repository/model-config.js'
import { sessionConfig } from '../../backends/onnxruntime/session-settings.js'
import { configOfOnnx } from '../../tensors/element-type.js'
import type { BorderTensor } from '../../repository/onnx-writer.js'

/** Where a stage runs. */
export type StageDevice = Readonly<{ kind: 'KIND_CPU' }> | Readonly<{ kind: 'KIND_GPU'; gpu: number }>

/** `config.pbtxt` of one stage. @param config - of the whole model, whose batch size and session options the stage has. */
export function stageConfig(
  name: string,
  config: ModelConfig,
  inputs: readonly BorderTensor[],
  outputs: readonly BorderTensor[],
  device: StageDevice,
): string {
  const maxBatchSize = config.max_batch_size ?? 0
  const gpus = device.kind === 'KIND_GPU' ? ` gpus: [ ${device.gpu} ]` : ''
  return [
    `name: "${name}"`,
    'backend: "onnxruntime"',
    `max_batch_size: ${maxBatchSize}`,
    ...inputs.map((tensor) => `input [ ${border(tensor, maxBatchSize)} ]`),
    ...outputs.map((tensor) => `output [ ${border(tensor, maxBatchSize)} ]`),
    `instance_group [ { count: 1 kind: ${device.kind}${gpus} } ]`,
    ...Object.entries(sessionConfig(config)).map(([key, value]) => parameter(key, value)),
    '',
  ].join('\n')
}

function parameter(key: string, value: string): string {
  return `parameters { key: "${key}" value { string_value: "${value}" } }`
}

export type StageBorder = Readonly<{ name: string; inputs: readonly string[]; outputs: readonly string[] }>

/**
 * `config.pbtxt` of the ensemble that runs the stages one after another; every tensor keeps the name it has in the model.
 *
 * @param config - of the whole model, whose tensors, parameters and labels the ensemble has.
 */
export function ensembleConfig(name: string, config: ModelConfig, stages: readonly StageBorder[]): string {
  return [
    `# The stages of a model, each with a device of its own. Several requests in flight keep all of them busy.`,
    `name: "${name}"`,
    'platform: "ensemble"',
    `max_batch_size: ${config.max_batch_size ?? 0}`,
    ...config.input.map((input) => `input [ ${whole(input)} ]`),
    ...config.output.map((output) => `output [ ${whole(output)} ]`),
    ...Object.entries(config.parameters)
      .filter(([key]) => key.startsWith('gantry.'))
      .map(([key, { string_value = '' }]) => parameter(key, string_value)),
    'ensemble_scheduling {',
    ...stages.flatMap((stage) => [
      '  step {',
      `    model_name: "${stage.name}"`,
      '    model_version: -1',
      ...stage.inputs.map((tensor) => `    input_map { key: "${tensor}" value: "${tensor}" }`),
      ...stage.outputs.map((tensor) => `    output_map { key: "${tensor}" value: "${tensor}" }`),
      '  }',
    ]),
    '}',
    '',
  ].join('\n')
}

function border({ name, type, shape }: BorderTensor, maxBatchSize: number): string {
  const dims = (maxBatchSize > 0 ? shape.slice(1) : shape).map((size) =>
    typeof size === 'number' ? size : -1,
  )
  return `{ name: "${name}" data_type: ${configOfOnnx(type)} dims: [ ${dims.join(', ')} ] }`
}

function whole(tensor: ModelInput | ModelOutput): string {
  const label = 'label_filename' in tensor ? (tensor.label_filename ?? '') : ''
  const labels = label === '' ? '' : ` label_filename: "${label}"`
  return `{ name: "${tensor.name}" data_type: ${tensor.data_type} dims: [ ${tensor.dims.join(', ')} ]${labels} }`
}
