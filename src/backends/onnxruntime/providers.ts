import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, isAbsolute, join, relative } from 'node:path'
import type { ExecutionProvider } from '../../config/inference.js'

/** `gpu`: few instances and large batches pay; `cpu`: one instance per core and no batches. */
export type DeviceKind = 'cpu' | 'gpu'

export function deviceOf(provider: ExecutionProvider): DeviceKind {
  return provider === 'cpu' ? 'cpu' : 'gpu'
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
  return `${library} is not installed; ${installHint()}`
}

/**
 * What installs the library for CUDA and TensorRT. `npm ci` does not: packages run no scripts here (`.npmrc`, `allowScripts`). The
 * script has it for CUDA 12 on x64 alone.
 */
function installHint(): string {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    return `onnxruntime-node has none for ${process.platform}/${process.arch}`
  return `\`${installCommand()}\` installs it, for CUDA 12 with cuDNN 9 (other versions: docs/models.md)`
}

function installCommand(): string {
  const script = join(packageDir() ?? 'node_modules/onnxruntime-node', 'script', 'install.js')
  const near = relative(process.cwd(), script)
  return `ONNXRUNTIME_NODE_INSTALL=cuda12 node ${near.startsWith('..') || isAbsolute(near) ? script : near}`
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

/** Folder of ONNX Runtime's libraries, or `undefined` when the package has another layout. */
export function onnxRuntimeBinaries(): string | undefined {
  const dir = packageDir()
  return dir === undefined ? undefined : join(dir, 'bin', 'napi-v6', process.platform, process.arch)
}

function packageDir(): string | undefined {
  try {
    return dirname(createRequire(import.meta.url).resolve('onnxruntime-node/package.json'))
  } catch {
    return undefined
  }
}
