import { readdirSync, realpathSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { installation } from '../../lifecycle/installation.js'
import { onnxRuntimeBinaries } from './providers.js'

/**
 * What `gantry gpu install` brought: a folder for each CUDA, and in it one for each package (`.cuda/13/nvidia-cublas-13.1.0.3/`). Links
 * beside ONNX Runtime lead to its libraries for a GPU; the loader of the system finds the others by its search path.
 */
export const cudaFolder = join(installation, '.cuda')

/** The library that ONNX Runtime loads for CUDA, beside itself. */
export const cudaProvider = 'libonnxruntime_providers_cuda.so'

/** A complete package: what is not complete has another name. */
const packageName = /^[a-z].*-\d[\d.]*$/

/** Complete packages in a folder of one CUDA: `nvidia-cublas-13.1.0.3`. */
export function broughtPackages(folderOfCuda: string): string[] {
  try {
    return readdirSync(folderOfCuda)
      .filter((name) => packageName.test(name))
      .sort()
  } catch {
    return []
  }
}

/** Folders with the libraries of NVIDIA that were brought for the provider that is installed; none where it finds them in the system. */
function libraryFolders(folder: string, binaries: string | undefined): string[] {
  try {
    const provider = realpathSync(join(binaries ?? '', cudaProvider))
    const ofCuda = dirname(dirname(provider))
    if (dirname(ofCuda) !== realpathSync(folder)) return []
    return broughtPackages(ofCuda)
      .filter((name) => name.startsWith('nvidia-'))
      .map((name) => join(ofCuda, name))
  } catch {
    return []
  }
}

/**
 * An environment in which the loader of the system finds them, before those of the same name that the system has. It reads the
 * variable once, when a process begins, so that it counts for processes that are started with it.
 */
export function withCudaLibraries(
  env: NodeJS.ProcessEnv,
  folder = cudaFolder,
  binaries = onnxRuntimeBinaries(),
): NodeJS.ProcessEnv {
  const folders = libraryFolders(folder, binaries)
  if (folders.length === 0) return env
  const others = searchPath(withoutCudaLibraries(env, folder))
  return { ...env, LD_LIBRARY_PATH: [...folders, ...others].join(delimiter) }
}

/** The environment as it is without what was brought. */
export function withoutCudaLibraries(env: NodeJS.ProcessEnv, folder = cudaFolder): NodeJS.ProcessEnv {
  const isOurs = (path: string) => path.startsWith(`${real(folder)}/`)
  if (!searchPath(env).some(isOurs)) return env
  const folders = searchPath(env).filter((path) => !isOurs(path))
  return { ...env, LD_LIBRARY_PATH: folders.length === 0 ? undefined : folders.join(delimiter) }
}

function searchPath({ LD_LIBRARY_PATH: path = '' }: NodeJS.ProcessEnv): string[] {
  return path.split(delimiter).filter((folder) => folder !== '')
}

function real(folder: string): string {
  try {
    return realpathSync(folder)
  } catch {
    return folder
  }
}
