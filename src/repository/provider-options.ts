import {
  optionNames,
  optionOf,
  optionRange,
  optionText,
  type OptionTexts,
  type ProviderOptions,
  type TunedProvider,
} from '../config/provider-options.js'
import { nearest } from '../config/suggest.js'
import type { ConfigFault } from './config-faults/fault.js'
import type { ExecutionAccelerator, ModelConfig } from './model-config.js'

/** What Triton calls options of TensorRT, where ONNX Runtime has another name for them. */
const tritonNames: Readonly<Record<string, string>> = {
  max_workspace_size_bytes: 'trt_max_workspace_size',
  int8_calibration_table_name: 'trt_int8_calibration_table_name',
  int8_use_native_calibration_table: 'trt_int8_use_native_calibration_table',
}

/** `precision_mode` of Triton. */
const precisions: Readonly<Record<string, OptionTexts>> = {
  FP32: {},
  FP16: { trt_fp16_enable: '1' },
  BF16: { trt_bf16_enable: '1' },
  INT8: { trt_int8_enable: '1' },
}

/** Parameters of a model that Triton's ONNX Runtime backend took before its accelerators had them, and their words by number. */
const cudaParameters: Readonly<Record<string, readonly string[] | undefined>> = {
  cudnn_conv_algo_search: ['EXHAUSTIVE', 'HEURISTIC', 'DEFAULT'],
  arena_extend_strategy: ['kNextPowerOfTwo', 'kSameAsRequested'],
  gpu_mem_limit: undefined,
  do_copy_in_default_stream: undefined,
}

/** Of the parameters of a model, those that become options of CUDA. */
export function isCudaParameter(key: string): boolean {
  return Object.hasOwn(cudaParameters, key)
}

/** Arenas that are shrunk after each run. */
export const shrinkageParameter = 'memory.enable_memory_arena_shrinkage'

/** An option that a configuration names, or why it means nothing. */
type Named = Readonly<{ provider: TunedProvider; options: OptionTexts }> | ConfigFault

/**
 * Options of execution providers in a configuration: its `parameters`, `execution_accelerators`, which come before those, and
 * `cuda { graphs }`. What is at fault is left out.
 */
export function providerOptionsOf(config: ModelConfig): ProviderOptions {
  const all: { cuda?: OptionTexts; tensorrt?: OptionTexts } = {}
  for (const named of namedOptions(config))
    if (!('field' in named)) all[named.provider] = { ...all[named.provider], ...named.options }
  return all
}

/** Options that there are not, and values that they cannot hold. */
export function providerOptionFaults(config: ModelConfig): readonly ConfigFault[] {
  return [...namedOptions(config).filter((named) => 'field' in named), ...shrinkageFaults(config)]
}

/** Whether a configuration asks for TensorRT, which is then tried before the other providers for a GPU. */
export function wantsTensorrt({ optimization }: ModelConfig): boolean {
  return acceleratorsOf(optimization).some(({ name }) => name === 'tensorrt')
}

/**
 * What a run is told of the arenas that are shrunk behind it, for models that run on a device.
 *
 * @returns undefined where none of that device is named.
 */
export function shrinkage({ parameters }: ModelConfig, device: 'cpu' | 'gpu'): string | undefined {
  const arenas = (parameters[shrinkageParameter]?.string_value ?? '').split(';')
  const own = arenas.filter((arena) => arena.startsWith(`${device}:`))
  return own.length === 0 ? undefined : own.join(';')
}

function shrinkageFaults({ parameters }: ModelConfig): readonly ConfigFault[] {
  const value = parameters[shrinkageParameter]?.string_value
  if (value === undefined || /^(cpu:0|gpu:\d{1,3})(;(cpu:0|gpu:\d{1,3}))*$/.test(value)) return []
  return [
    {
      field: `parameters["${shrinkageParameter}"]`,
      problem: `it is "${value}"`,
      fix: 'write cpu:0, gpu:0 or both, divided by a semicolon',
    },
  ]
}

function namedOptions(config: ModelConfig): readonly Named[] {
  const parameters = Object.entries(config.parameters).flatMap(([key, { string_value = '' }]) =>
    isCudaParameter(key) ? [ofParameter(key, string_value)] : [],
  )
  const accelerators = acceleratorsOf(config.optimization).flatMap((accelerator, index) =>
    ofAccelerator(accelerator, `optimization.execution_accelerators.gpu_execution_accelerator[${index}]`),
  )
  const graphs: Named = { provider: 'cuda', options: { enable_cuda_graph: '1' } }
  return [...parameters, ...(config.optimization?.cuda?.graphs === true ? [graphs] : []), ...accelerators]
}

function acceleratorsOf(optimization: ModelConfig['optimization']): readonly ExecutionAccelerator[] {
  return optimization?.execution_accelerators?.gpu_execution_accelerator ?? []
}

function ofParameter(key: string, value: string): Named {
  const words = cudaParameters[key]
  if (words === undefined) return named('cuda', key, value, `parameters["${key}"]`)
  const word = /^\d$/.test(value) ? words[Number(value)] : undefined
  if (word !== undefined) return { provider: 'cuda', options: { [key]: word } }
  return {
    field: `parameters["${key}"]`,
    problem: `unsupported ${key} value '${value}' is requested`,
    fix: `write ${words.map((each, index) => `${index} for ${each}`).join(', ')}`,
  }
}

function ofAccelerator({ name, parameters }: ExecutionAccelerator, field: string): readonly Named[] {
  if (name !== 'cuda' && name !== 'tensorrt') return []
  return Object.entries(parameters).map(([key, value]): Named => {
    const place = `${field}.parameters["${key}"]`
    if (name === 'tensorrt' && key === 'precision_mode') return ofPrecision(value, place)
    return named(name, (name === 'tensorrt' ? tritonNames[key] : undefined) ?? key, value, place)
  })
}

function ofPrecision(value: string, field: string): Named {
  const options = Object.hasOwn(precisions, value) ? precisions[value] : undefined
  if (options !== undefined) return { provider: 'tensorrt', options }
  const problem = `unsupported precision mode '${value}' is requested`
  return { field, problem, fix: `write one of: ${Object.keys(precisions).join(', ')}` }
}

function named(provider: TunedProvider, name: string, value: string, field: string): Named {
  const option = optionOf(provider, name)
  if (option === undefined) {
    const near = nearest(name, optionNames(provider))
    const title = provider === 'cuda' ? 'CUDA' : 'TensorRT'
    return {
      field,
      problem: `unknown parameter '${name}' is provided for ${title} Execution Accelerator`,
      fix: near === undefined ? 'docs/configuration.md lists those there are' : `did you mean "${near}"?`,
    }
  }
  if (option.ofFiles === true)
    return {
      field,
      problem: 'a model names no files of the server',
      fix: `write inference.${provider}.${name} in the pipeline file`,
    }
  const text = optionText(option, value)
  if (text !== undefined) return { provider, options: { [name]: text } }
  return { field, problem: `it is "${value}"`, fix: `write ${optionRange(option)}` }
}
