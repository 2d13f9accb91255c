import type { ExecutionProvider, InferenceConfig } from '../../config/inference.js'
import { optionTexts, tunedProviders } from '../../config/provider-options.js'
import type { ModelConfig } from '../../repository/model-config.js'
import { providerOptionsOf, shrinkage, wantsTensorrt } from '../../repository/provider-options.js'
import type { NativeOptions } from './native-options.js'
import { oneShape } from './providers.js'

/** Options of the pipeline file, which those of the model come before. */
export function nativeOptions(
  inference: Partial<Pick<InferenceConfig, 'cuda' | 'tensorrt' | 'pinnedMemory'>>,
  config: ModelConfig,
): NativeOptions {
  const own = providerOptionsOf(config)
  const merged = tunedProviders.map(
    (provider) => [provider, { ...optionTexts(inference[provider] ?? {}), ...own[provider] }] as const,
  )
  const arenas = (['cpu', 'gpu'] as const).flatMap((device) => {
    const named = shrinkage(config, device)
    return named === undefined ? [] : [[device, named] as const]
  })
  return {
    providerOptions: Object.fromEntries(merged),
    ...(inference.pinnedMemory === true && { pinnedMemory: true }),
    ...(arenas.length > 0 && { shrinkage: Object.fromEntries(arenas) }),
  }
}

/** Where a model is tried: on TensorRT before the other providers for a GPU if it asks for that. */
export function acceleratedProviders(
  providers: readonly ExecutionProvider[],
  config: ModelConfig,
): readonly ExecutionProvider[] {
  const first = providers.findIndex((provider) => oneShape(provider))
  if (first < 0 || !wantsTensorrt(config)) return providers
  const others = providers.filter((provider, index) => index < first || provider !== 'tensorrt')
  return others.toSpliced(first, 0, 'tensorrt')
}
