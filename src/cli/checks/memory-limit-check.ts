import { checkMemoryLimit, memoryLimitOf } from '../../backends/onnxruntime/memory-limit.js'
import { nativeOptions } from '../../backends/onnxruntime/provider-options.js'
import type { ProviderState } from '../../backends/onnxruntime/provider-look.js'
import { oneShape } from '../../backends/onnxruntime/providers.js'
import type { InferenceConfig } from '../../config/inference.js'
import { planDetector } from '../../detector/detector-plan.js'
import { gpuBatchSizes, instanceSettings } from '../../detector/instance-settings.js'
import { findCameraModel } from '../../ensemble/camera-model.js'
import { toErrorRecord } from '../../errors.js'
import type { Repositories } from '../../repository/repository-files.js'
import type { Finding } from '../findings.js'
import { runningProvider } from './provider-check.js'

/**
 * What `gpu_mem_limit` comes to for the detector of cameras: it is of each session, and people mean the card. Nothing where no limit is set, or
 * no GPU runs the models; of a model that cannot be used its own check tells.
 */
export async function checkMemoryLimits(
  repositories: Repositories,
  ensemble: string,
  inference: InferenceConfig,
  states: readonly ProviderState[],
): Promise<readonly Finding[]> {
  const provider = runningProvider(states)
  if (provider === undefined || !oneShape(provider)) return []
  try {
    const { detector: own, gpuDetector } = findCameraModel(repositories, ensemble)
    const detector = gpuDetector ?? own
    if (detector === undefined) return []
    const options = nativeOptions(inference, detector.config)
    const limit = memoryLimitOf(options, provider)
    if (limit === undefined) return []
    const { maxBatchSize } = planDetector(detector)
    const { instances } = instanceSettings('gpu', inference, detector, maxBatchSize)
    const sizes = gpuBatchSizes(inference, detector, maxBatchSize)
    const sessions = instances * sizes.length
    const subject = 'gpu_mem_limit'
    const detail = `${gib(limit)} GiB for each session: ${instances} instances of ${detector.name} with ${sizes.length} sizes of batches (${sizes.join(', ')}) have ${sessions}, ${gib(limit * sessions)} GiB of a card at most`
    const fault = await faultOf(checkMemoryLimit(detector.path, options, provider))
    return [{ subject, state: 'ok', detail, ...fault }]
  } catch {
    return []
  }
}

async function faultOf(check: Promise<void>): Promise<Partial<Finding>> {
  try {
    await check
    return {}
  } catch (error) {
    const { message, hint } = toErrorRecord(error)
    return { state: 'failed', detail: message, fix: hint }
  }
}

function gib(bytes: number): string {
  return (bytes / 1024 ** 3).toFixed(1)
}
