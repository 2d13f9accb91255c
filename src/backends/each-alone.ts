import type { BatchResult, Execution } from '../runtime/backend.js'
import type { Tensor } from '../tensors/tensor.js'

/** Runs the executions of a batch side by side, each for itself: one that fails leaves the others alone. */
export async function eachAlone(
  batch: readonly Execution[],
  nowMs: () => number,
  run: (execution: Execution) => Promise<readonly Tensor[]>,
): Promise<BatchResult> {
  const beganMs = nowMs()
  const results = await Promise.all(
    batch.map(async (execution) => {
      try {
        return await run(execution)
      } catch (error) {
        return error instanceof Error ? error : new Error(String(error))
      }
    }),
  )
  const computeInferNs = Math.round((nowMs() - beganMs) * 1e6)
  return { results, times: { computeInputNs: 0, computeInferNs, computeOutputNs: 0 } }
}
