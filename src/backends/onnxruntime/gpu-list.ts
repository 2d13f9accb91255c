import { askGpus } from './ask-gpus.js'
import { gpuCount } from './nvidia-cards.js'

/**
 * GPUs of this machine, by the numbers that CUDA counts them with; none where nothing tells of any. Without files of the driver, as on WSL,
 * `nvidia-smi` is asked.
 */
export async function listGpus(): Promise<readonly number[]> {
  const count = gpuCount() ?? (await askGpus()).length
  return Array.from({ length: count }, (_, index) => index)
}
