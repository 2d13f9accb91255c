import type { ProviderState } from '../../backends/onnxruntime/provider-look.js'
import { oneShape, takesDevice } from '../../backends/onnxruntime/providers.js'
import type { InferenceConfig } from '../../config/inference.js'
import { planDetector } from '../../detector/detector-plan.js'
import { comparisonText, isFasterInFloat16 } from '../../detector/float16.js'
import { Float16Findings } from '../../detector/float16-findings.js'
import { findCameraModel } from '../../ensemble/camera-model.js'
import { comparedOn } from '../../ensemble/float16-choice.js'
import type { Repositories } from '../../repository/repository-files.js'
import type { Finding } from '../findings.js'
import { devicesToTry, runningProvider } from './provider-check.js'

/**
 * What is remembered of a detector of cameras that names its model in float16, and which of the two that takes. Nothing where no GPU runs the
 * models; of a model that cannot be used its own check tells.
 */
export async function checkFloat16(
  repositories: Repositories,
  ensemble: string,
  inference: InferenceConfig,
  states: readonly ProviderState[],
  findings = new Float16Findings(),
): Promise<readonly Finding[]> {
  const provider = runningProvider(states)
  if (provider === undefined || !oneShape(provider)) return []
  const pair = pairOf(repositories, ensemble)
  if (pair === undefined) return []
  const { detector, float16 } = pair
  const devices = takesDevice(provider) ? await devicesToTry(inference) : [0]
  return Promise.all(
    devices.map(async (deviceId): Promise<Finding> => {
      const compared = comparedOn(deviceId, detector, planDetector(detector), float16, inference)
      const found = await findings.find(compared)
      const subject = `float16 on GPU ${deviceId}`
      if (found === undefined)
        return {
          subject,
          state: 'ok',
          detail: `not measured with this card, driver and runtime: the first load runs a batch of ${compared.size} of ${detector.name} and of ${float16.name}, and takes the faster`,
        }
      const taken = isFasterInFloat16(found) ? float16 : detector
      return { subject, state: 'ok', detail: `${comparisonText(found)}: ${taken.name} is taken` }
    }),
  )
}

/** A detector and the same in float16. */
function pairOf(repositories: Repositories, ensemble: string) {
  try {
    const { detector: own, gpuDetector, float16Detector: float16 } = findCameraModel(repositories, ensemble)
    const detector = gpuDetector ?? own
    return detector === undefined || float16 === undefined ? undefined : { detector, float16 }
  } catch {
    return undefined
  }
}
