import { readdirSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import type { ExecutionProvider } from '../../config/inference.js'
import { providerReason } from './provider-reason.js'
import { onnxRuntimeBinaries } from './providers.js'

/** Why a provider does not do what it was asked, from what native code threw. */
export function providerFailure(error: unknown, provider: ExecutionProvider, deviceId: number): string {
  const text = error instanceof Error ? error.message : String(error)
  const loading = /Failed to load shared library/.test(text) ? loadFailure(provider) : undefined
  return loading ?? providerReason(text, { deviceId, gpus: gpuCount() })
}

/** ONNX Runtime says on stderr alone which library is missing, so the loader of the system is asked. */
function loadFailure(provider: ExecutionProvider): string | undefined {
  const dir = onnxRuntimeBinaries()
  if (dir === undefined) return undefined
  for (const library of ['libonnxruntime_providers_shared.so', `libonnxruntime_providers_${provider}.so`]) {
    try {
      process.dlopen({ exports: {} }, join(dir, library), constants.dlopen.RTLD_LAZY)
    } catch (error) {
      const said = (error as Error).message
      // It was loaded, and is no addon.
      if (/did not self-register/.test(said)) continue
      const reason = providerReason(said, { deviceId: 0, gpus: undefined })
      return / is missing/.test(reason) ? reason : `${library} cannot be loaded: ${said.replace(/^.*: /, '')}`
    }
  }
  return `libonnxruntime_providers_${provider}.so does not fit this version of ONNX Runtime`
}

/** Those that CUDA shows to this process, as far as the driver's files tell. */
function gpuCount(): number | undefined {
  const visible = process.env.CUDA_VISIBLE_DEVICES
  if (visible !== undefined) return visible.split(',').filter((id) => id.trim() !== '').length
  try {
    return readdirSync('/proc/driver/nvidia/gpus').length
  } catch {
    return undefined
  }
}
