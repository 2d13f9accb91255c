import { devicesOf } from '../../config/inference.js'
import type { PipelineConfig } from '../../config/pipeline.js'
import { listGpus } from '../../backends/onnxruntime/gpu-list.js'
import { deviceProviderIsInstalled } from '../../backends/onnxruntime/providers.js'

/** Where models run: GPUs by number, for providers that take one by its number. */
export type DevicesInUse = Readonly<{
  /** One at least, also where no provider runs on one. */
  all: readonly number[]
  /** Of each engine, by its index. */
  engineDevices: readonly number[]
}>

/**
 * Which GPUs are used, and by which engine: as many engines on each, one at least. Where no provider for them is installed nothing is asked
 * or read, and engines are as many as are asked for.
 *
 * @param repositories - that of the ensemble first.
 * @param isInstalled - whether a provider for them is; tests have one of their own.
 */
export async function devicesFor(
  { inference, engines, ensemble }: Pick<PipelineConfig, 'inference' | 'engines' | 'ensemble'>,
  repositories: readonly string[],
  isInstalled = deviceProviderIsInstalled(inference.providers),
): Promise<DevicesInUse> {
  const asked = devicesOf(inference)
  const there = asked === 'auto' && isInstalled ? await listGpus() : []
  const wanted = asked === 'auto' ? there : asked
  const all = wanted.length === 0 ? [0] : wanted
  const forCameras = isInstalled && engines > 0 ? await devicesOfCameras(repositories, ensemble) : undefined
  return { all, engineDevices: spreadOver(engines, isInstalled ? (forCameras ?? all) : all.slice(0, 1)) }
}

function spreadOver(engines: number, devices: readonly number[]): readonly number[] {
  const count = Math.ceil(engines / devices.length) * devices.length
  return Array.from({ length: count }, (_, index) => devices[index % devices.length] ?? 0)
}

async function devicesOfCameras(
  repositories: readonly string[],
  ensemble: string,
): Promise<readonly number[] | undefined> {
  const { cameraDevices } = await import('../../ensemble/camera-devices.js')
  return cameraDevices(repositories, ensemble)
}
