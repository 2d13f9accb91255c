/** What an option of an execution provider may hold. */
type OptionKind =
  | Readonly<{ kind: 'flag' }>
  | Readonly<{ kind: 'number'; from: number }>
  | Readonly<{ kind: 'word'; words: readonly string[] }>
  | Readonly<{ kind: 'text' }>

export type Option = OptionKind &
  Readonly<{
    means: string
    /** It names files, or has some written: models say nothing of it, since clients can bring a configuration. */
    ofFiles?: true
  }>

const flag = { kind: 'flag' } as const
const text = { kind: 'text' } as const
const number = (from: number) => ({ kind: 'number', from }) as const
const word = (...words: readonly string[]) => ({ kind: 'word', words }) as const

/**
 * Options by their names in ONNX Runtime, which are also those of Triton's `config.pbtxt`. Left out are the device, which is chosen
 * elsewhere, streams and allocators, which are addresses, and whatever loads a library.
 */
export const optionTables = {
  cuda: {
    gpu_mem_limit: {
      ...number(1),
      means: 'Most bytes of the arena of each session; there is one for each size of batch.',
    },
    arena_extend_strategy: { ...word('kNextPowerOfTwo', 'kSameAsRequested'), means: 'How the arena grows.' },
    cudnn_conv_algo_search: {
      ...word('EXHAUSTIVE', 'HEURISTIC', 'DEFAULT'),
      means: 'How cuDNN chooses the algorithm of a convolution.',
    },
    cudnn_conv_use_max_workspace: { ...flag, means: 'Algorithms may use as much memory as they like.' },
    cudnn_conv1d_pad_to_nc1d: { ...flag, means: 'Pads convolutions over one dimension to [N, C, 1, D].' },
    do_copy_in_default_stream: { ...flag, means: 'Copies in the stream that computes.' },
    use_ep_level_unified_stream: { ...flag, means: 'One stream for all that a session does.' },
    enable_cuda_graph: {
      ...flag,
      means:
        'Records the run of each size of batch once and plays it back: all of the model must run on CUDA.',
    },
    use_tf32: { ...flag, means: 'Lets float32 be multiplied as TF32.' },
    prefer_nhwc: { ...flag, means: 'Channels last inside the model.' },
    fuse_conv_bias: { ...flag, means: 'Lets cuDNN add the bias of a convolution.' },
    enable_skip_layer_norm_strict_mode: { ...flag, means: 'Sums of SkipLayerNormalization in float32.' },
    sdpa_kernel: { ...number(0), means: 'Which kernels of attention may be used, as bits.' },
    tunable_op_enable: { ...flag, means: 'Uses operators that can be tuned.' },
    tunable_op_tuning_enable: { ...flag, means: 'Tunes them.' },
    tunable_op_max_tuning_duration_ms: { ...number(0), means: 'Longest that one is tuned; 0: no limit.' },
  },
  tensorrt: {
    trt_max_workspace_size: {
      ...number(0),
      means: 'Most bytes that an engine may take while it runs; 0: no limit.',
    },
    trt_max_partition_iterations: {
      ...number(1),
      means: 'Tries to divide the model between TensorRT and others.',
    },
    trt_min_subgraph_size: { ...number(1), means: 'Fewest nodes that are worth an engine.' },
    trt_fp16_enable: { ...flag, means: 'float16.' },
    trt_bf16_enable: { ...flag, means: 'bfloat16.' },
    trt_int8_enable: {
      ...flag,
      means: 'int8; the model has QuantizeLinear, or a calibration table is named.',
    },
    trt_int8_calibration_table_name: { ...text, ofFiles: true, means: 'File in `trt_engine_cache_path`.' },
    trt_int8_use_native_calibration_table: { ...flag, means: 'The table is one of TensorRT.' },
    trt_dla_enable: { ...flag, means: 'Uses the deep learning accelerator.' },
    trt_dla_core: { ...number(0), means: 'Which core of it.' },
    trt_engine_cache_enable: {
      ...flag,
      means: 'Keeps engines in `trt_engine_cache_path`, which must be set.',
    },
    trt_engine_cache_path: { ...text, ofFiles: true, means: 'Folder that engines are kept in.' },
    trt_engine_cache_prefix: { ...text, ofFiles: true, means: 'Begins their names.' },
    trt_engine_hw_compatible: { ...flag, means: 'Engines that newer cards take as well.' },
    trt_timing_cache_enable: {
      ...flag,
      means: 'Keeps timings of layers in `trt_timing_cache_path`, which must be set.',
    },
    trt_timing_cache_path: { ...text, ofFiles: true, means: 'Folder that timings are kept in.' },
    trt_force_timing_cache: { ...flag, means: 'Takes timings of other cards as well.' },
    trt_force_sequential_engine_build: { ...flag, means: 'Builds one engine at a time.' },
    trt_context_memory_sharing_enable: { ...flag, means: 'Engines of a session share their memory.' },
    trt_layer_norm_fp32_fallback: { ...flag, means: 'Layer normalisation in float32.' },
    trt_build_heuristics_enable: { ...flag, means: 'Builds faster, by rules of thumb.' },
    trt_sparsity_enable: { ...flag, means: 'Uses weights that are 0.' },
    trt_builder_optimization_level: { ...number(0), means: 'Effort of the build; TensorRT takes 3.' },
    trt_auxiliary_streams: {
      ...number(-1),
      means: 'Streams beside the one that computes; -1: as TensorRT likes.',
    },
    trt_tactic_sources: { ...text, means: 'Such as `-CUDNN,+CUBLAS`.' },
    trt_profile_min_shapes: { ...text, means: 'Smallest shapes, such as `images:1x3x416x416`.' },
    trt_profile_max_shapes: { ...text, means: 'Largest shapes.' },
    trt_profile_opt_shapes: { ...text, means: 'Shapes that the engine is built for.' },
    trt_detailed_build_log: { ...flag, means: 'Logs each step of a build.' },
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, Option>>>>

/** Providers that have options. */
export type TunedProvider = keyof typeof optionTables
export const tunedProviders = Object.keys(optionTables) as readonly TunedProvider[]

export function optionNames(provider: TunedProvider): readonly string[] {
  return Object.keys(optionTables[provider])
}

export function optionOf(provider: TunedProvider, name: string): Option | undefined {
  return new Map<string, Option>(Object.entries(optionTables[provider])).get(name)
}

/** Options as ONNX Runtime takes them: each as text, flags as 0 and 1. */
export type OptionTexts = Readonly<Record<string, string>>
export type ProviderOptions = Readonly<Partial<Record<TunedProvider, OptionTexts>>>

/** A section of the pipeline file with options. */
export type OptionSection = Readonly<Record<string, boolean | number | string>>

export function optionTexts(section: OptionSection): OptionTexts {
  return Object.fromEntries(
    Object.entries(section).map(([name, value]) => [
      name,
      typeof value === 'boolean' ? String(Number(value)) : String(value),
    ]),
  )
}

/** Text of a `config.pbtxt` in the form that ONNX Runtime takes; undefined for what the option cannot hold. */
export function optionText(option: Option, given: string): string | undefined {
  switch (option.kind) {
    case 'flag':
      if (/^(1|true)$/i.test(given)) return '1'
      return /^(0|false)$/i.test(given) ? '0' : undefined
    case 'number':
      return /^-?\d{1,20}$/.test(given) && Number(given) >= option.from ? given : undefined
    case 'word':
      return option.words.find((known) => known === given)
    case 'text':
      return given === '' ? undefined : given
    default:
      return option satisfies never
  }
}

/** What an option may hold, for people. */
export function optionRange(option: Option): string {
  switch (option.kind) {
    case 'flag':
      return '0 or 1'
    case 'number':
      return `a whole number from ${option.from}`
    case 'word':
      return `one of ${option.words.join(', ')}`
    case 'text':
      return 'some text'
    default:
      return option satisfies never
  }
}
