import { ModelInvalidError } from './errors.js'
import {
  hiddenInputs,
  type ModelConfig,
  type ModelInput,
  type ModelOutput,
  type SequenceControl,
} from './model-config.js'
import type { OnnxInfo } from './onnx-file.js'
import { configOfOnnx, type ConfigType } from '../tensors/element-type.js'
import { describeTensor, type ModelTensor } from '../tensors/tensor.js'

/**
 * Checks that a configuration and the model file speak of the same tensors.
 *
 * @throws ModelInvalidError `GANTRY_MODEL_INVALID` naming the tensor, what the file has and what the configuration expects.
 */
export function matchTensors(config: ModelConfig, onnx: OnnxInfo, file: string): void {
  const maxBatchSize = config.max_batch_size ?? 0
  for (const input of config.input) matchOne('input', input, onnx.inputs, maxBatchSize, file)
  for (const output of config.output) matchOne('output', output, onnx.outputs, maxBatchSize, file)
  const optional = config.input.find((input) => input.optional === true)
  if (optional !== undefined)
    throw new ModelInvalidError(
      `${file}: input "${optional.name}" is optional, but the model cannot run without it`,
      'Leave optional out: inputs of an ONNX model that have a default are not inputs of its configuration.',
    )
  matchSequenceTensors(config, onnx, maxBatchSize, file)
  const configured = new Set([...config.input.map((input) => input.name), ...hiddenInputs(config)])
  const missing = onnx.inputs.filter((input) => !configured.has(input.name))
  if (missing.length > 0)
    throw new ModelInvalidError(
      `${file}: the model also needs input ${missing.map((tensor) => `"${tensor.name}" ${describeTensor(tensor)}`).join(', ')}`,
      'Add it to config.pbtxt, or leave all inputs out to take them from the model.',
    )
}

/** What the sequence scheduler fills in and keeps. */
function matchSequenceTensors(
  { sequence_batching: sequences }: ModelConfig,
  onnx: OnnxInfo,
  maxBatchSize: number,
  file: string,
): void {
  for (const { name, control } of sequences?.control_input ?? []) {
    const tensor = find('input', name, onnx.inputs, file)
    const [first] = control
    const expected = first && controlType(first)
    if (expected !== undefined && configOfOnnx(tensor.type) !== expected)
      throw new ModelInvalidError(
        `${file}: control_input "${name}" is ${describeTensor(tensor)} in the model, but ${expected} is expected`,
        'Give the values of the control the type of that input.',
      )
  }
  for (const { input_name, output_name, data_type, dims } of sequences?.state ?? []) {
    matchOne('input', { name: input_name, data_type, dims }, onnx.inputs, maxBatchSize, file)
    matchOne('output', { name: output_name, data_type, dims }, onnx.outputs, maxBatchSize, file)
  }
}

function controlType(control: SequenceControl): ConfigType | undefined {
  if (control.kind === 'CONTROL_SEQUENCE_CORRID') return control.data_type
  if (control.int32_false_true.length > 0) return 'TYPE_INT32'
  if (control.fp32_false_true.length > 0) return 'TYPE_FP32'
  return control.bool_false_true.length > 0 ? 'TYPE_BOOL' : undefined
}

function find(
  side: 'input' | 'output',
  name: string,
  tensors: readonly ModelTensor[],
  file: string,
): ModelTensor {
  const tensor = tensors.find((candidate) => candidate.name === name)
  if (tensor !== undefined) return tensor
  throw new ModelInvalidError(
    `${file}: the model has no ${side} "${name}"`,
    `Its ${side}s are: ${tensors.map((known) => `"${known.name}" ${describeTensor(known)}`).join(', ')}.`,
  )
}

/** As far as a tensor of the configuration tells what it is in the model. */
type Wanted = Pick<ModelInput | ModelOutput, 'name' | 'data_type' | 'dims' | 'reshape'>

function matchOne(
  side: 'input' | 'output',
  wanted: Wanted,
  tensors: readonly ModelTensor[],
  maxBatchSize: number,
  file: string,
): void {
  const tensor = find(side, wanted.name, tensors, file)
  const own = wanted.reshape?.shape ?? wanted.dims
  const dims = maxBatchSize > 0 ? [-1, ...own] : own
  const sameType = configOfOnnx(tensor.type) === wanted.data_type
  const isScalar = maxBatchSize === 0 && tensor.shape.length === 0
  if (
    sameType &&
    (isScalar ? own.every((size) => size === 1) : sameShape(dims, tensor.shape, maxBatchSize > 0))
  )
    return
  const batchMisfits =
    maxBatchSize > 0 && (dims.length !== tensor.shape.length || typeof tensor.shape[0] === 'number')
  throw new ModelInvalidError(
    `${file}: ${side} "${wanted.name}" is ${describeTensor(tensor)} in the model, but ${wanted.data_type} [${dims.join(', ')}] is expected`,
    isScalar
      ? 'A scalar has dims: [ 1 ].'
      : batchMisfits
        ? 'With max_batch_size > 0 the first dimension of the model must be free, and dims leave it out.'
        : 'Correct data_type and dims in config.pbtxt, or leave the tensors out to take them from the model.',
  )
}

/** -1 and a named dimension fit any size; the batch dimension must be free in the model. */
function sameShape(
  dims: readonly number[],
  shape: readonly (number | string)[],
  firstIsBatch: boolean,
): boolean {
  if (dims.length !== shape.length) return false
  if (firstIsBatch && typeof shape[0] === 'number') return false
  return dims.every((size, index) => {
    const actual = shape[index]
    return size === -1 || typeof actual !== 'number' || actual === size
  })
}

/** Tensors that have no dimension in the model file, and one of size 1 or several for clients, as with Triton: `dims: [ 1 ]`. */
export type ScalarTensors = Readonly<{
  inputs: readonly string[]
  /** With the shapes that they have for clients. */
  outputs: Readonly<Record<string, readonly number[]>>
}>

/** @param config - that {@link matchTensors} has found to fit. */
export function scalarTensors(config: ModelConfig, onnx: OnnxInfo): ScalarTensors {
  const isScalar = ({ shape }: ModelTensor) => shape.length === 0
  const states = (config.sequence_batching?.state ?? []).map(({ output_name, dims }) => ({
    name: output_name,
    dims,
    reshape: undefined,
  }))
  const shapes = new Map(
    [...states, ...config.output].map(({ name, dims, reshape }) => [name, reshape?.shape ?? dims]),
  )
  return {
    inputs: onnx.inputs.filter(isScalar).map(({ name }) => name),
    outputs: Object.fromEntries(
      onnx.outputs.filter(isScalar).map(({ name }) => [name, shapes.get(name) ?? []]),
    ),
  }
}

/**
 * A model's outputs with the sizes that its file leaves open taken from the configuration, as exporters often lose the shape of
 * the last concatenation.
 */
export function knownOutputs(config: ModelConfig, onnx: Pick<OnnxInfo, 'outputs'>): readonly ModelTensor[] {
  return onnx.outputs.map((tensor) => {
    const dims = config.output.find((output) => output.name === tensor.name)?.dims ?? []
    const fromEnd = tensor.shape.length - dims.length
    const shape = tensor.shape.map((size, index) => {
      const configured = dims[index - fromEnd] ?? -1
      return typeof size === 'string' && configured > 0 ? configured : size
    })
    return { ...tensor, shape }
  })
}

/** A model's inputs, likewise. */
export function knownInputs(config: ModelConfig, onnx: Pick<OnnxInfo, 'inputs'>): readonly ModelTensor[] {
  return knownOutputs({ ...config, output: config.input }, { outputs: onnx.inputs })
}
