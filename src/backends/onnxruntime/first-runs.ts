import { type ErrorCode, RemoteError } from '../../errors.js'
import { ModelInvalidError } from '../../repository/errors.js'
import { type ModelConfig, stateOutputs } from '../../repository/model-config.js'
import type { OnnxInfo } from '../../repository/onnx-file.js'
import type { Execution } from '../../runtime/backend.js'
import type { BatchSizes, SizeCost } from '../../runtime/batch-sizes.js'
import { itemBytes, mostItems, zeros } from '../../runtime/batching-probe.js'
import { InferenceFailedError, TensorShapeError, WorkerExitedError } from '../../runtime/errors.js'
import type { InstanceSizes } from '../../runtime/instances/slot.js'
import type { Tensor } from '../../tensors/tensor.js'
import type { OnnxInstance } from './onnx-instance.js'

/** Of the inputs of a size that is warmed by itself; a larger one waits for a client. */
const mostWarmedBytes = 512 * 1024 ** 2

/** Of a first run: no other run will do better. */
const refusals: readonly ErrorCode[] = ['GANTRY_PROVIDER_OPTIONS', 'GANTRY_DEVICE_UNFIT']

/**
 * The first run allocates and is slow. Models whose sizes are open, or that refuse zeros, do it with their first request. Two items tell
 * whether outputs have the batch as their first dimension.
 *
 * @param ofSequences - inputs that the sequence scheduler adds.
 * @param sizes - that a session takes each; undefined: batches run as they are.
 * @param atOnce - how many of the sizes are run, the smallest first; the others are the caller's.
 * @returns the sizes; undefined without, and where none can be run beforehand.
 * @throws ModelInvalidError for an output without a row for each item
 */
export async function firstRuns(
  instance: OnnxInstance,
  config: ModelConfig,
  ofSequences: readonly Tensor[],
  sizes: BatchSizes | undefined,
  atOnce: number,
): Promise<InstanceSizes | undefined> {
  const items = Math.min(2, Math.max(1, config.max_batch_size ?? 0), mostItems(config))
  if (items < 1 || config.input.some((input) => input.dims.includes(-1))) return undefined
  const warm: SizeCost[] = []
  try {
    const one = oneItem(config, ofSequences)
    if (sizes === undefined) {
      await instance.execute(Array.from({ length: items }, () => one))
      return undefined
    }
    const run = (size: number): Promise<SizeCost> => {
      checkWarmed(size, config)
      return instance.warm(one, size)
    }
    const inUse = { all: sizes, warm, run }
    for (const size of sizes.slice(0, atOnce)) {
      const failed = await run(size).then((cost) => void warm.push(cost), keep)
      if (failed === undefined) continue
      if (warm.length === 0 || isFinal(failed.error)) throw failed.error
      // It is tried once more where others are, and then left out.
      break
    }
    return inUse
  } catch (error) {
    if (error instanceof WorkerExitedError) throw error
    const { cause } = error as Error
    if (cause instanceof InferenceFailedError && refusals.includes(cause.record.code))
      throw new RemoteError(cause.record)
    if (isOfShape(error))
      throw new ModelInvalidError(
        `model "${config.name ?? ''}": ${error.message}`,
        'Write max_batch_size: 0 and the whole shapes in dims, or export the model with the batch first in every output.',
        error,
      )
    return undefined
  }
}

/**
 * How many sizes are run at the load. A model of sequences runs all: a sequence stays with its instance, and would wait while that warms one.
 * Others run the first, and where the file does not say that outputs have the batch first, one of several rows, which tells.
 */
export function sizesAtOnce(sizes: BatchSizes, config: ModelConfig, onnx: OnnxInfo): number {
  if (config.sequence_batching !== undefined) return sizes.length
  if (isSaidToBatch(onnx)) return 1
  const several = sizes.findIndex((size) => size > 1)
  return several < 0 ? 1 : several + 1
}

/** Whether all tensors have the same name as their first dimension. */
function isSaidToBatch({ inputs, outputs }: OnnxInfo): boolean {
  const first = new Set([...inputs, ...outputs].map(({ shape }) => shape[0]))
  return first.size === 1 && typeof [...first][0] === 'string'
}

function oneItem(config: ModelConfig, ofSequences: readonly Tensor[]): Execution {
  const one = zeros(config)
  const inputs = new Map([...one.inputs, ...ofSequences.map((tensor) => [tensor.name, tensor] as const)])
  return { ...one, inputs, outputs: [...new Set([...one.outputs, ...stateOutputs(config)])] }
}

/** @throws Error saying why a size is not run with zeros */
function checkWarmed(size: number, config: ModelConfig): void {
  const bytes = size * itemBytes(config)
  if (bytes <= mostWarmedBytes) return
  const mib = (of: number) => Math.round(of / 1024 ** 2)
  throw new Error(
    `its inputs would be ${mib(bytes)} MiB, and no more than ${mib(mostWarmedBytes)} MiB are run before a client asks`,
  )
}

function keep(error: unknown): Readonly<{ error: unknown }> {
  return { error }
}

/** It is no matter of the size. */
function isFinal(error: unknown): boolean {
  if (error instanceof WorkerExitedError || isOfShape(error)) return true
  const { cause } = error as Error
  return cause instanceof InferenceFailedError && refusals.includes(cause.record.code)
}

/** Whether an output has not a row for each item, as the thread or its answer tells. */
function isOfShape(error: unknown): error is Error {
  const cause = error instanceof Error ? error.cause : undefined
  return (
    cause instanceof TensorShapeError ||
    (cause instanceof InferenceFailedError && cause.record.code === 'GANTRY_TENSOR_SHAPE')
  )
}
