import { mkdirSync, rmSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { join } from 'node:path'
import {
  cudaFolder,
  cudaProvider,
  withCudaLibraries,
  withoutCudaLibraries,
} from '../../backends/onnxruntime/cuda-libraries.js'
import {
  cudaIsToBeHad,
  onnxRuntimeBinaries,
  onnxRuntimePackage,
  onnxRuntimeVersion,
} from '../../backends/onnxruntime/providers.js'
import { byTrueName } from '../../lifecycle/system-limit.js'
import { type CudaPackage, type LibraryChoice, libraryPackages, providerPackage } from './cuda-packages.js'
import { CudaStore, type GpuPlace } from './cuda-store.js'
import { GpuInstallError } from './gpu-install-error.js'
import { unloadableLibraries } from './loader.js'
import { type CudaMajor, cudaFor, type NvidiaDriver, nvidiaDriver } from './nvidia-driver.js'
import { runOwnInstaller } from './own-installer.js'
import { downloadWheel } from './download-wheel.js'
import { findPip } from '../../tools/python/pip.js'
import type { ToolOptions } from '../../lifecycle/run-tool.js'
import { unpackLibraries, wheelVersion } from './wheel.js'

export type GpuRequest = Readonly<{
  /** Default: the newest that the driver runs. */
  cuda: CudaMajor | undefined
  libraries: LibraryChoice
  tensorrt: boolean
}>

/** What a GPU installation of this machine is to have. */
export type GpuPlan = Readonly<{
  driver: NvidiaDriver | undefined
  cuda: CudaMajor
  provider: CudaPackage
  /** Those of NVIDIA that are brought, or were. */
  libraries: readonly CudaPackage[]
  /** Of all these, what is not there yet. */
  toBring: readonly CudaPackage[]
  tensorrt: boolean
}>

type Progress = Omit<ToolOptions, 'cwd'> & Readonly<{ say: (line: string) => void }>

/** @throws GpuInstallError if ONNX Runtime has no library for a GPU on this machine, or is not where it should be */
export function placeOfThisInstallation(): GpuPlace {
  const [binaries, runtime] = [onnxRuntimeBinaries(), onnxRuntimePackage()]
  if (!cudaIsToBeHad())
    throw new GpuInstallError(
      `ONNX Runtime has no library for CUDA on ${process.platform}/${process.arch}`,
      'It has one for Linux on x64. Another machine can run the models: backend "kserve", docs/models.md.',
    )
  if (binaries === undefined || runtime === undefined)
    throw new GpuInstallError('the package onnxruntime-node is not installed', 'npm ci')
  return { folder: cudaFolder, binaries, runtime, version: onnxRuntimeVersion() }
}

/** @throws GpuInstallError if there is no driver that tells which CUDA, or it is too old for the one that was asked for */
export async function planGpu(
  request: GpuRequest,
  place: GpuPlace,
  env: NodeJS.ProcessEnv,
): Promise<GpuPlan> {
  const driver = await nvidiaDriver(env)
  const cuda = cudaFor(driver, request.cuda)
  const store = new CudaStore(place)
  const provider = providerPackage(place.version)
  const known = libraryPackages[cuda]
  const brought = ({ name }: CudaPackage) => store.find(cuda, name) !== undefined
  const libraries = await librariesFor(
    request.libraries,
    known,
    brought,
    withoutCudaLibraries(env, place.folder),
  )
  return {
    driver,
    cuda,
    provider,
    libraries,
    toBring: [
      ...(store.has(cuda, wholeName(place)) ? [] : [provider]),
      ...libraries.filter((library) => !brought(library)),
    ],
    tensorrt: request.tensorrt,
  }
}

/** What is to be downloaded, and the room that it takes at most while that is done, in MB: pip holds a download twice for a moment. */
export function sizeOf(packages: readonly CudaPackage[]): { downloadMb: number; neededMb: number } {
  const sum = (of: (one: CudaPackage) => number) => packages.reduce((total, one) => total + of(one), 0)
  const downloadMb = sum((one) => one.downloadMb)
  const largest = Math.max(0, ...packages.map((one) => one.downloadMb))
  return { downloadMb, neededMb: sum((one) => one.unpackedMb) + 2 * largest }
}

/**
 * Brings what the plan lacks, and lets ONNX Runtime find it. What was brought before a failure stays, and the next try goes on there.
 *
 * @throws GpuInstallError, SystemLimitError
 */
export async function installGpu(plan: GpuPlan, place: GpuPlace, progress: Progress): Promise<void> {
  const store = new CudaStore(place)
  try {
    if (plan.toBring.length > 0) await checkRoom(plan.toBring, place.folder)
    const python = plan.toBring.some((wanted) => comesByPip(wanted, plan)) ? await findPip(progress.env) : ''
    for (const wanted of plan.toBring) {
      progress.say(`${wanted.name} ...`)
      if (comesByPip(wanted, plan)) await bring(wanted, plan.cuda, store, python, progress)
      else
        await store.add(plan.cuda, wholeName(place), (folder) =>
          runOwnInstaller(place.runtime, folder, progress),
        )
    }
    store.link(plan.cuda, wholeName(place), plan.tensorrt)
    store.tidy(plan.cuda, wholeName(place))
  } catch (error) {
    throw byTrueName('what is brought cannot be kept', error)
  }
}

/**
 * Removes what was brought.
 *
 * @returns whether there was anything, and which libraries stay, as others put them there.
 * @throws SystemLimitError if this user may not
 */
export function removeGpu(place: GpuPlace): { removed: boolean; left: readonly string[] } {
  const store = new CudaStore(place)
  try {
    return { removed: store.remove(), left: store.strangers() }
  } catch (error) {
    throw byTrueName('what was brought cannot be removed', error)
  }
}

/** What the loader of the system does not find of all that a model on the card needs, but for the driver: without a card it tells no more. */
export async function missingForProvider(
  { cuda }: GpuPlan,
  place: GpuPlace,
  env: NodeJS.ProcessEnv,
): Promise<readonly string[]> {
  const needed = libraryPackages[cuda].flatMap(({ libraries }) => libraries)
  const missing = await unloadableLibraries(
    [join(place.binaries, cudaProvider), ...needed],
    withCudaLibraries(env, place.folder, place.binaries),
  )
  return [...new Set(missing.values())].filter((library) => !library.startsWith('libcuda.so'))
}

/** Libraries that go with the provider: `missing` are those that the system has not, or that were brought for that reason before. */
async function librariesFor(
  which: LibraryChoice,
  known: readonly CudaPackage[],
  brought: (one: CudaPackage) => boolean,
  env: NodeJS.ProcessEnv,
): Promise<readonly CudaPackage[]> {
  if (which === 'all') return known
  if (which === 'none') return known.filter(brought)
  const missing = await unloadableLibraries(
    known.flatMap(({ libraries }) => libraries),
    env,
  )
  return known.filter((one) => brought(one) || one.libraries.some((library) => missing.has(library)))
}

/** PyPI has the provider for CUDA 13 alone. */
function comesByPip(wanted: CudaPackage, { provider, cuda }: GpuPlan): boolean {
  return wanted !== provider || cuda === 13
}

function wholeName({ version }: GpuPlace): string {
  return `onnxruntime-gpu-${version}`
}

async function bring(
  wanted: CudaPackage,
  cuda: CudaMajor,
  store: CudaStore,
  python: string,
  progress: Progress,
): Promise<void> {
  const downloads = store.downloads(wanted.name)
  const wheel = await downloadWheel(python, wanted, downloads, progress)
  try {
    await store.add(cuda, `${wanted.name}-${wheelVersion(wheel)}`, (folder) =>
      unpackLibraries(python, wheel, folder, wanted.files, progress),
    )
  } finally {
    // Also where it is damaged: it is fetched anew.
    rmSync(downloads, { recursive: true, force: true })
  }
}

async function checkRoom(packages: readonly CudaPackage[], folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const { bavail, bsize } = await statfs(folder)
  const problem = roomProblem(sizeOf(packages).neededMb, (bavail * bsize) / 1e6, folder)
  if (problem !== undefined) throw problem
}

/** What to say where there is too little room; undefined where there is enough. */
export function roomProblem(neededMb: number, freeMb: number, folder: string): GpuInstallError | undefined {
  if (freeMb >= neededMb) return undefined
  return new GpuInstallError(
    `${gigabytes(neededMb)} are needed in ${folder}, and ${gigabytes(freeMb)} are free`,
    'Make room, or install CUDA and cuDNN for the system and take --libraries none.',
  )
}

/** `1.4 GB` */
export function gigabytes(mb: number): string {
  return `${(mb / 1000).toFixed(1)} GB`
}
