import { createRequire } from 'node:module'
import { executionProviders } from '../../config/inference.js'
import { missingProviderReason } from '../../inference/providers.js'
import type { Finding } from '../findings.js'

/** Whether ONNX Runtime can be loaded, and which of the providers it can be asked for. */
export async function examineOnnxRuntime(): Promise<Finding[]> {
  try {
    await import('onnxruntime-node')
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error)
    return [{ subject: 'onnxruntime', state: 'failed', detail, fix: 'npm ci' }]
  }
  return [
    { subject: 'onnxruntime', state: 'ok', detail: runtimeVersion() },
    ...executionProviders.map((provider): Finding => {
      const reason = missingProviderReason(provider)
      const subject = `provider ${provider}`
      if (reason !== undefined) return { subject, state: 'skipped', detail: reason }
      if (provider === 'webgpu')
        return {
          subject,
          state: 'ok',
          detail: 'built in; it needs a Vulkan driver, which shows when a model is loaded',
        }
      return { subject, state: 'ok', detail: provider === 'cpu' ? 'built in' : 'installed' }
    }),
  ]
}

function runtimeVersion(): string {
  const { version } = createRequire(import.meta.url)('onnxruntime-node/package.json') as { version: string }
  return version
}
