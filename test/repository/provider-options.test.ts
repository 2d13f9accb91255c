import { describe, expect, it } from 'vitest'
import { parseModelConfig } from '../../src/repository/model-config-text.js'
import {
  providerOptionFaults,
  providerOptionsOf,
  shrinkage,
  wantsTensorrt,
} from '../../src/repository/provider-options.js'

const config = (text: string) => parseModelConfig(text, 'config.pbtxt')
const accelerator = (name: string, parameters: Readonly<Record<string, string>>) =>
  `optimization { execution_accelerators { gpu_execution_accelerator [ { name: "${name}" ${Object.entries(
    parameters,
  )
    .map(([key, value]) => `parameters { key: "${key}" value: "${value}" }`)
    .join(' ')} } ] } }`
const parameters = (all: Readonly<Record<string, string>>) =>
  Object.entries(all)
    .map(([key, value]) => `parameters { key: "${key}" value { string_value: "${value}" } }`)
    .join(' ')

describe('providerOptionsOf', () => {
  it.each([
    ['', {}],
    // The examples of Triton's ONNX Runtime backend.
    [
      accelerator('tensorrt', {
        precision_mode: 'FP16',
        max_workspace_size_bytes: '1073741824',
        trt_engine_cache_enable: '1',
      }),
      {
        tensorrt: {
          trt_fp16_enable: '1',
          trt_max_workspace_size: '1073741824',
          trt_engine_cache_enable: '1',
        },
      },
    ],
    [
      accelerator('cuda', { cudnn_conv_use_max_workspace: '0', use_ep_level_unified_stream: '1' }),
      { cuda: { cudnn_conv_use_max_workspace: '0', use_ep_level_unified_stream: '1' } },
    ],
    [
      parameters({ cudnn_conv_algo_search: '0', gpu_mem_limit: '4294967200' }),
      { cuda: { cudnn_conv_algo_search: 'EXHAUSTIVE', gpu_mem_limit: '4294967200' } },
    ],
    [
      parameters({ arena_extend_strategy: '1', do_copy_in_default_stream: '0' }),
      { cuda: { arena_extend_strategy: 'kSameAsRequested', do_copy_in_default_stream: '0' } },
    ],
    [accelerator('tensorrt', { precision_mode: 'INT8' }), { tensorrt: { trt_int8_enable: '1' } }],
    [
      accelerator('cuda', { use_tf32: 'false', prefer_nhwc: 'True' }),
      { cuda: { use_tf32: '0', prefer_nhwc: '1' } },
    ],
    ['optimization { cuda { graphs: true } }', { cuda: { enable_cuda_graph: '1' } }],
    ['optimization { cuda { graphs: false } }', {}],
    // The accelerator comes before the parameters.
    [
      `${parameters({ gpu_mem_limit: '1' })} ${accelerator('cuda', { gpu_mem_limit: '2' })}`,
      { cuda: { gpu_mem_limit: '2' } },
    ],
    [accelerator('gpu_io', {}), {}],
  ])('reads %s', (text, expected) => {
    expect(providerOptionsOf(config(text))).toEqual(expected)
    expect(providerOptionFaults(config(text))).toEqual([])
  })
})

describe('R42: providerOptionFaults', () => {
  it.each([
    [
      accelerator('cuda', { gpu_memory_limit: '1' }),
      "unknown parameter 'gpu_memory_limit'",
      'did you mean "gpu_mem_limit"?',
    ],
    [
      accelerator('tensorrt', { trt_fp16_enabled: '1' }),
      "unknown parameter 'trt_fp16_enabled'",
      'did you mean "trt_fp16_enable"?',
    ],
    [accelerator('cuda', { trt_fp16_enable: '1' }), 'unknown parameter', 'docs/configuration.md'],
    [accelerator('cuda', { device_id: '1' }), "unknown parameter 'device_id'", ''],
    // Clients can bring a configuration: it loads no library and writes no file.
    [accelerator('tensorrt', { trt_extra_plugin_lib_paths: '/tmp/x.so' }), 'unknown parameter', ''],
    [
      accelerator('tensorrt', { trt_engine_cache_path: '/etc' }),
      'names no files',
      'inference.tensorrt.trt_engine_cache_path',
    ],
    [
      accelerator('tensorrt', { int8_calibration_table_name: '../x' }),
      'names no files',
      'trt_int8_calibration_table_name',
    ],
    [
      accelerator('tensorrt', { precision_mode: 'fp16' }),
      "unsupported precision mode 'fp16'",
      'FP32, FP16, BF16, INT8',
    ],
    [accelerator('tensorrt', { precision_mode: 'toString' }), 'unsupported precision mode', ''],
    [accelerator('tensorrt', { trt_min_subgraph_size: '0' }), 'it is "0"', 'a whole number from 1'],
    [accelerator('cuda', { gpu_mem_limit: '4 GB' }), 'it is "4 GB"', 'a whole number from 1'],
    [accelerator('cuda', { use_tf32: 'maybe' }), 'it is "maybe"', '0 or 1'],
    [
      accelerator('cuda', { cudnn_conv_algo_search: 'FAST' }),
      'it is "FAST"',
      'EXHAUSTIVE, HEURISTIC, DEFAULT',
    ],
    [
      parameters({ cudnn_conv_algo_search: '3' }),
      "unsupported cudnn_conv_algo_search value '3'",
      '1 for HEURISTIC',
    ],
    [
      parameters({ arena_extend_strategy: 'big' }),
      "unsupported arena_extend_strategy value 'big'",
      '0 for kNextPowerOfTwo',
    ],
    [parameters({ gpu_mem_limit: '-1' }), 'it is "-1"', 'from 1'],
    [parameters({ do_copy_in_default_stream: '2' }), 'it is "2"', '0 or 1'],
    [parameters({ 'memory.enable_memory_arena_shrinkage': 'cpu' }), 'it is "cpu"', 'cpu:0, gpu:0'],
  ])('of %s names key, value and what to write', (text, problem, fix) => {
    const [fault, ...others] = providerOptionFaults(config(text))
    expect(others).toEqual([])
    expect(fault?.problem).toContain(problem)
    expect(fault?.fix).toContain(fix)
  })
})

it('knows which arenas are shrunk, by device, and who wants TensorRT', () => {
  const both = config(parameters({ 'memory.enable_memory_arena_shrinkage': 'cpu:0;gpu:0;gpu:1' }))
  expect([shrinkage(both, 'cpu'), shrinkage(both, 'gpu'), shrinkage(config(''), 'cpu')]).toEqual([
    'cpu:0',
    'gpu:0;gpu:1',
    undefined,
  ])
  expect(wantsTensorrt(config(accelerator('tensorrt', {})))).toBe(true)
  expect(wantsTensorrt(config(accelerator('cuda', {})))).toBe(false)
})
