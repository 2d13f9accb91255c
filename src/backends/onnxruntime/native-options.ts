import type { ExecutionProvider } from '../../config/inference.js'
import type { OptionTexts } from '../../config/provider-options.js'
import { GantryError } from '../../errors.js'
import { type DeviceKind, deviceOf, oneShape } from './providers.js'

/** What a session is asked for that the binding for Node has no word for. */
export type NativeOptions = Readonly<{
  /** By provider, as ONNX Runtime takes them. */
  providerOptions?: Readonly<Partial<Record<ExecutionProvider, OptionTexts>>>
  /** Inputs and outputs lie in memory that the card reads and writes by itself. */
  pinnedMemory?: boolean
  /** Arenas that are shrunk behind each run, by the device that runs the model. */
  shrinkage?: Readonly<Partial<Record<DeviceKind, string>>>
}>

/** An option of an execution provider that cannot be followed. */
export class ProviderOptionsError extends GantryError {
  readonly code = 'GANTRY_PROVIDER_OPTIONS'
  constructor(
    message: string,
    readonly hint: string,
    cause?: unknown,
  ) {
    super(message, { cause })
    this.name = 'ProviderOptionsError'
  }
}

/** What of a session on a provider needs the C API, in words for people; undefined where the binding does. */
export function nativeWish(options: NativeOptions, provider: ExecutionProvider): string | undefined {
  const [name] = Object.keys(options.providerOptions?.[provider] ?? {})
  if (name !== undefined) return `${name} of ${provider}`
  if (options.pinnedMemory === true && oneShape(provider)) return 'inference.pinnedMemory'
  return provider === 'webgpu' || options.shrinkage?.[deviceOf(provider)] === undefined
    ? undefined
    : 'memory.enable_memory_arena_shrinkage'
}

/** Whether the run of a session is recorded once and played back. */
export function replaysRuns({ providerOptions }: NativeOptions, provider: ExecutionProvider): boolean {
  return providerOptions?.[provider]?.['enable_cuda_graph'] === '1'
}

/** @throws ProviderOptionsError for what makes sense only with another option */
export function checkOptions(options: OptionTexts, provider: ExecutionProvider): void {
  for (const cache of ['engine', 'timing'])
    if (options[`trt_${cache}_cache_enable`] === '1' && options[`trt_${cache}_cache_path`] === undefined)
      throw new ProviderOptionsError(
        `trt_${cache}_cache_enable of ${provider} is set, but no folder is named`,
        `Set inference.tensorrt.trt_${cache}_cache_path in the pipeline file.`,
      )
}

/** What native code said that an option is the cause of; undefined where none is. */
export function optionFault(
  text: string,
  options: NativeOptions,
  provider: ExecutionProvider,
): ProviderOptionsError | undefined {
  const own = options.providerOptions?.[provider] ?? {}
  const limit = own['gpu_mem_limit']
  const [, left, asked] =
    /Available memory of (\d+) is smaller than requested bytes of (\d+)/.exec(text) ?? []
  if (limit !== undefined && left !== undefined && asked !== undefined)
    return new ProviderOptionsError(
      `gpu_mem_limit of ${provider} is ${limit} bytes, which is under what the model needs: it asked for ${asked} bytes where ${left} were left`,
      'Raise gpu_mem_limit, or run smaller batches (inference.batchSizes, preferred_batch_size).',
    )
  const [, named] = /(?:Unknown|Failed to parse) provider option:? "(\w+)"/.exec(text) ?? []
  const value = named === undefined ? undefined : own[named]
  if (value !== undefined)
    return new ProviderOptionsError(
      `the installed library does not take ${named} of ${provider} as "${value}"`,
      'Leave it out, or install the library of a version that knows it.',
    )
  if (!replaysRuns(options, provider)) return undefined
  if (/graph capture feature|capturing|CUDA failure 90\d/i.test(text))
    return new ProviderOptionsError(
      `the run of the model cannot be recorded on ${provider}: parts of it run on the CPU, or depend on its data`,
      'Leave out enable_cuda_graph (inference.cuda, optimization.cuda.graphs) for this model.',
    )
  return undefined
}
