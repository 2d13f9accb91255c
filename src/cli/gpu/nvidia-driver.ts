import { driverVersion } from '../../backends/onnxruntime/nvidia-cards.js'
import { programOutput } from '../../lifecycle/program-output.js'
import { GpuInstallError } from './gpu-install-error.js'

/** Versions of CUDA that ONNX Runtime's library is to be had for. */
export const cudaMajors = [12, 13] as const
export type CudaMajor = (typeof cudaMajors)[number]

export type NvidiaDriver = Readonly<{
  /** `580.159.03` */
  version: string
  /** The newest CUDA that it runs: `13.0`. */
  cuda: string
}>

/** The first driver that runs a CUDA, as NVIDIA's release notes have it. */
const firstDrivers = [
  [580, '13.0'],
  [525, '12.0'],
  [450, '11.0'],
] as const

/** The driver of this machine, as `nvidia-smi` or, where a container lacks that, the kernel tells it; undefined where there is none. */
export async function nvidiaDriver(
  env: NodeJS.ProcessEnv,
  versionFile?: string,
): Promise<NvidiaDriver | undefined> {
  const said = (await programOutput('nvidia-smi', [], env)) ?? ''
  const version = /Driver Version: *(\d+(?:\.\d+)+)/.exec(said)?.[1] ?? driverVersion(versionFile)
  if (version === undefined) return undefined
  return { version, cuda: /CUDA(?: \w+)? Version: *(\d+\.\d+)/.exec(said)?.[1] ?? cudaOf(version) }
}

/**
 * The CUDA to install for: the newest that the driver runs, or the one that was asked for.
 *
 * @throws GpuInstallError if there is no driver to tell, or it is too old
 */
export function cudaFor(driver: NvidiaDriver | undefined, asked?: CudaMajor): CudaMajor {
  if (driver === undefined) {
    if (asked !== undefined) return asked
    throw new GpuInstallError(
      'no NVIDIA driver is found: nvidia-smi does not answer',
      'Install the driver of the card; to prepare an image for another machine, name its CUDA: --cuda 13 (driver 580 or newer) or --cuda 12.',
    )
  }
  const runs = `the NVIDIA driver ${driver.version} runs CUDA up to ${driver.cuda}`
  const newest = cudaMajors.findLast((major) => major <= Number.parseInt(driver.cuda, 10))
  if (newest === undefined)
    throw new GpuInstallError(runs, 'Install driver 525 or newer (CUDA 12), best 580 (CUDA 13).')
  if (asked !== undefined && asked > newest)
    throw new GpuInstallError(`${runs}, not ${asked}`, 'Install driver 580 or newer, or leave out --cuda.')
  return asked ?? newest
}

/** The newest CUDA that a driver of that version runs. */
export function cudaOf(driver: string): string {
  const line = Number.parseInt(driver, 10)
  return firstDrivers.find(([first]) => line >= first)?.[1] ?? '10'
}
