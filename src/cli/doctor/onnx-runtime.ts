import { onnxRuntimeVersion } from '../../backends/onnxruntime/providers.js'
import { executionProviders, type ExecutionProvider } from '../../config/inference.js'
import { lookAtProvider } from '../../backends/onnxruntime/provider-look.js'
import { providerFix } from '../checks/provider-check.js'
import type { Finding } from '../findings.js'

/** Whether ONNX Runtime can be loaded, and which of the providers runs a model. */
export async function examineOnnxRuntime(deviceId: number): Promise<Finding[]> {
  try {
    await import('../../backends/onnxruntime/onnxruntime.js')
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error)
    return [{ subject: 'onnxruntime', state: 'failed', detail, fix: 'npm ci' }]
  }
  return [
    { subject: 'onnxruntime', state: 'ok', detail: onnxRuntimeVersion() },
    ...(await Promise.all(executionProviders.map((provider) => examineProvider(provider, deviceId)))),
  ]
}

/** Runs a model on it, as far as it is installed. */
export async function examineProvider(
  provider: ExecutionProvider,
  deviceId: number,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Finding> {
  const subject = `provider ${provider}`
  const { state, reason } = await lookAtProvider(provider, deviceId, { env })
  const there = provider === 'webgpu' ? 'built in' : 'installed'
  switch (state) {
    case 'not installed':
      return { subject, state: 'skipped', detail: reason }
    case 'fails':
      return {
        subject,
        state: 'warning',
        detail: `${there}, but runs no model: ${reason}`,
        fix: providerFix(provider),
      }
    case 'runs':
      if (provider === 'cpu') return { subject, state: 'ok', detail: 'built in' }
      return {
        subject,
        state: 'ok',
        detail: `${there}, and runs a small model${provider === 'webgpu' ? '' : ` on GPU ${deviceId}`}`,
      }
    default:
      return state satisfies never
  }
}
