import { nativeCalls } from '../../backends/onnxruntime/c-api/native-calls.js'
import { nativeWish } from '../../backends/onnxruntime/native-options.js'
import { nativeOptions } from '../../backends/onnxruntime/provider-options.js'
import type { InferenceConfig } from '../../config/inference.js'
import { emptyModelConfig } from '../../repository/model-config.js'
import type { Finding } from '../findings.js'
import type { ProviderState } from '../../backends/onnxruntime/provider-look.js'
import { runningProvider } from './provider-check.js'

/** Whether the options of the pipeline file can reach the provider that runs the models; nothing where it has none. */
export function checkProviderOptions(
  inference: InferenceConfig,
  states: readonly ProviderState[],
  canCall = nativeCalls() !== undefined,
): readonly Finding[] {
  const provider = runningProvider(states)
  const wish = provider && nativeWish(nativeOptions(inference, emptyModelConfig), provider)
  if (wish === undefined || canCall) return []
  return [
    {
      subject: 'options',
      state: 'failed',
      detail: `${wish} needs the package koffi, which is not installed: no model is loaded on ${provider}`,
      fix: '`npm install koffi` in the folder of Gantry, or leave the option out',
    },
  ]
}
