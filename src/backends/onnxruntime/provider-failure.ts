import { constants } from 'node:os'
import { join } from 'node:path'
import type { ExecutionProvider } from '../../config/inference.js'
import { missingLibraries } from './needed-libraries.js'
import { driverVersion, gpuCount, gpuMemory } from './nvidia-cards.js'
import { missingLibraryIn, missingLibrariesText, plainReason, providerReason } from './provider-reason.js'
import { onnxRuntimeBinaries, takesDevice } from './providers.js'

/** Why a provider does not do what it was asked, from what native code threw. */
export function providerFailure(error: unknown, provider: ExecutionProvider, deviceId: number): string {
  const text = error instanceof Error ? error.message : String(error)
  if (provider === 'cpu') return plainReason(text)
  const loading = /Failed to load shared library/.test(text) ? loadFailure(provider) : undefined
  if (loading !== undefined) return loading
  if (!takesDevice(provider)) return providerReason(text, { deviceId: undefined, gpus: undefined })
  return providerReason(text, {
    deviceId,
    gpus: gpuCount(),
    memory: () => gpuMemory(deviceId),
    driver: () => driverVersion(),
  })
}

/** ONNX Runtime says on stderr alone which library is missing, so the loader of the system is asked. */
function loadFailure(provider: ExecutionProvider): string | undefined {
  const dir = onnxRuntimeBinaries()
  if (dir === undefined) return undefined
  for (const library of ['libonnxruntime_providers_shared.so', `libonnxruntime_providers_${provider}.so`]) {
    const path = join(dir, library)
    try {
      process.dlopen({ exports: {} }, path, constants.dlopen.RTLD_LAZY)
    } catch (error) {
      const said = (error as Error).message
      // It was loaded, and is no addon.
      if (/did not self-register/.test(said)) continue
      const missing = missingLibraryIn(said)
      return missing === undefined
        ? `${library} cannot be loaded: ${said.replace(/^.*: /, '')}`
        : missingLibrariesText([...new Set([missing, ...missingLibraries(path)])])
    }
  }
  return `libonnxruntime_providers_${provider}.so does not fit this version of ONNX Runtime`
}
