import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { broughtPackages, cudaProvider } from '../../backends/onnxruntime/cuda-libraries.js'
import type { CudaMajor } from './nvidia-driver.js'

/** ONNX Runtime's libraries for a GPU. That of CUDA stands last: with it they count as installed. */
const providers = [
  'libonnxruntime_providers_shared.so',
  'libonnxruntime_providers_tensorrt.so',
  cudaProvider,
] as const

/** Where things are in an installation. */
export type GpuPlace = Readonly<{
  /** What is brought: `.cuda`. */
  folder: string
  /** Libraries of ONNX Runtime, which finds its providers beside itself. */
  binaries: string
  /** The package with its own installer. */
  runtime: string
  /** Of ONNX Runtime. */
  version: string
}>

/**
 * What was brought, on the disk. A package is a folder that gets its name when it is complete, and providers are links: whatever is
 * broken off leaves what worked before, or nothing that ONNX Runtime could find.
 */
export class CudaStore {
  readonly #place: GpuPlace

  constructor(place: GpuPlace) {
    this.#place = place
  }

  /** Whole name of a package that is there: `nvidia-cublas-13.1.0.3`. */
  find(cuda: CudaMajor, name: string): string | undefined {
    const ofName = new RegExp(`^${name}-\\d[\\d.]*$`)
    return broughtPackages(this.#folderOf(cuda)).find((found) => ofName.test(found))
  }

  /** Whether the package of that whole name is there. */
  has(cuda: CudaMajor, name: string): boolean {
    return broughtPackages(this.#folderOf(cuda)).includes(name)
  }

  /** Folder where the download of a package may wait for its next try. */
  downloads(name: string): string {
    return join(this.#place.folder, 'downloads', name)
  }

  /**
   * Adds a package.
   *
   * @param fill - puts its files into an empty folder.
   * @throws what `fill` throws; nothing is added then
   */
  async add(cuda: CudaMajor, name: string, fill: (folder: string) => Promise<void>): Promise<void> {
    const complete = join(this.#folderOf(cuda), name)
    const partial = `${complete}.partial`
    rmSync(partial, { recursive: true, force: true })
    mkdirSync(partial, { recursive: true })
    try {
      await fill(partial)
      renameSync(partial, complete)
    } catch (error) {
      rmSync(partial, { recursive: true, force: true })
      throw error
    }
  }

  /** Lets ONNX Runtime find the providers of a package, and of TensorRT only where that is asked for. */
  link(cuda: CudaMajor, name: string, tensorrt: boolean): void {
    const binaries = realpathSync(this.#place.binaries)
    const from = realpathSync(join(this.#folderOf(cuda), name))
    const wanted = providers.filter((library) => tensorrt || !library.includes('tensorrt'))
    if (wanted.every((library) => readLink(join(binaries, library)) === join(from, library))) return
    this.#unlink()
    // Somebody may have put it there by hand; until the new one is linked there is none.
    rmSync(join(binaries, cudaProvider), { force: true })
    for (const library of wanted) {
      const link = join(binaries, library)
      rmSync(link, { force: true })
      symlinkSync(relative(binaries, join(from, library)), link)
    }
  }

  /** Removes what is not needed any more beside the packages of one CUDA and the version of the runtime. */
  tidy(cuda: CudaMajor, provider: string): void {
    const { folder } = this.#place
    const others = readdirSync(folder).filter((name) => name !== String(cuda))
    const older = readdirSync(this.#folderOf(cuda)).filter(
      (name) => name.endsWith('.partial') || (name.startsWith('onnxruntime-gpu-') && name !== provider),
    )
    for (const path of [...others, ...older.map((name) => join(String(cuda), name))])
      rmSync(join(folder, path), { recursive: true, force: true })
  }

  /**
   * Removes everything that was brought. Libraries that somebody else put beside ONNX Runtime stay.
   *
   * @returns whether there was anything.
   */
  remove(): boolean {
    const { folder } = this.#place
    const removed = this.#unlink()
    if (!existsSync(folder)) return removed
    rmSync(folder, { recursive: true })
    return true
  }

  /** Libraries beside ONNX Runtime that are no links of ours. */
  strangers(): string[] {
    return providers.filter((library) => {
      const path = join(this.#place.binaries, library)
      return lstatSync(path, { throwIfNoEntry: false }) !== undefined && !this.#isOurs(path)
    })
  }

  #unlink(): boolean {
    const links = [...providers].reverse().map((library) => join(this.#place.binaries, library))
    const ours = links.filter((path) => this.#isOurs(path))
    for (const path of ours) rmSync(path)
    return ours.length > 0
  }

  #isOurs(path: string): boolean {
    const target = readLink(path)
    return target !== undefined && target.startsWith(`${real(this.#place.folder)}/`)
  }

  #folderOf(cuda: CudaMajor): string {
    return join(this.#place.folder, String(cuda))
  }
}

/** Where a link leads, whether or not there is anything; undefined for what is no link. */
function readLink(path: string): string | undefined {
  try {
    return resolve(real(dirname(path)), readlinkSync(path))
  } catch {
    return undefined
  }
}

/** A path without links in it, also of something that is gone. */
function real(path: string): string {
  return existsSync(path) ? realpathSync(path) : join(real(dirname(path)), basename(path))
}
