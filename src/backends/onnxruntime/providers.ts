import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { ExecutionProvider } from '../../config/inference.js'

/** `gpu`: few instances and large batches pay; `cpu`: one instance per core and no batches. */
export type DeviceKind = 'cpu' | 'gpu'

export function deviceOf(provider: ExecutionProvider): DeviceKind {
  return provider === 'cpu' ? 'cpu' : 'gpu'
}

/** Whether it runs on the GPU of a number that it is given; the others take what there is. */
export function takesDevice(provider: ExecutionProvider): provider is 'cuda' | 'tensorrt' {
  return provider === 'cuda' || provider === 'tensorrt'
}

/**
 * Whether a session may see one shape only: CUDA builds every convolution's plan anew when a shape changes, also back to a known
 * one (1.1 s in float32, 3.4 s in float16 on an H100), and TensorRT its engine. WebGPU keeps what it compiled for each shape, and
 * its cards are small: a batch filled up would cost more there than it saves.
 */
export function oneShape(provider: ExecutionProvider): boolean {
  return provider === 'cuda' || provider === 'tensorrt'
}

/**
 * Why a provider cannot even be tried, or `undefined` if it can.
 *
 * CUDA and TensorRT are libraries beside ONNX Runtime that an ordinary installation lacks; asking for them anyway makes the
 * native code write errors to stderr that look like faults.
 */
export function missingProviderReason(provider: ExecutionProvider): string | undefined {
  if (provider !== 'cuda' && provider !== 'tensorrt') return undefined
  const library = `libonnxruntime_providers_${provider}.so`
  const dir = onnxRuntimeBinaries()
  if (dir !== undefined && existsSync(join(dir, library))) return undefined
  return `${library} is not installed; ${installHint(provider)}`
}

/** Whether ONNX Runtime's library for CUDA and TensorRT is to be had for this machine. */
export function cudaIsToBeHad(): boolean {
  return process.platform === 'linux' && process.arch === 'x64'
}

/** What installs the library for CUDA and TensorRT. `npm ci` does not: packages run no scripts here (`.npmrc`, `allowScripts`). */
function installHint(provider: 'cuda' | 'tensorrt'): string {
  if (!cudaIsToBeHad()) return `onnxruntime-node has none for ${process.platform}/${process.arch}`
  return `\`gantry gpu install${provider === 'tensorrt' ? ' --tensorrt' : ''}\` brings it`
}

/** Providers for a GPU that are tried before the CPU, which takes every model. */
export function gpuProvidersOf(providers: readonly ExecutionProvider[]): readonly ExecutionProvider[] {
  const cpu = providers.indexOf('cpu')
  return cpu < 0 ? providers : providers.slice(0, cpu)
}

/** Whether one of them is there to be tried; that it works is not said. */
export function gpuIsInstalled(providers: readonly ExecutionProvider[]): boolean {
  return gpuProvidersOf(providers).some((provider) => missingProviderReason(provider) === undefined)
}

/** Whether one of them runs on GPUs by their numbers, so that several can be used. */
export function deviceProviderIsInstalled(providers: readonly ExecutionProvider[]): boolean {
  return gpuIsInstalled(gpuProvidersOf(providers).filter(takesDevice))
}

/** Folder of ONNX Runtime's libraries, or `undefined` when the package has another layout. */
export function onnxRuntimeBinaries(): string | undefined {
  const dir = onnxRuntimePackage()
  return dir === undefined ? undefined : join(dir, 'bin', 'napi-v6', process.platform, process.arch)
}

/** Of ONNX Runtime, which is not loaded for it. */
export function onnxRuntimeVersion(): string {
  const { version } = createRequire(import.meta.url)('onnxruntime-node/package.json') as { version: string }
  return version
}

/** Folder of the package; `undefined` where it cannot be found. */
export function onnxRuntimePackage(): string | undefined {
  try {
    return dirname(createRequire(import.meta.url).resolve('onnxruntime-node/package.json'))
  } catch {
    return undefined
  }
}
