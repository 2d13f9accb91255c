import type { ModelConfig } from '../repository/model-config.js'
import { nowMs } from '../lifecycle/clock.js'
import type { BatchResult, Execution } from './backend.js'
import { datatypeOfConfig, elementBytes } from '../tensors/element-type.js'
import { filledTensor } from './filled-tensor.js'

export type BatchingProbe = Readonly<{
  pays: boolean
  /** Milliseconds per item; absent if the model could not be probed. */
  figures?: Readonly<{ alone: number; batched: number; batchSize: number }>
}>

/** Of zeros: a model is not tried with more. */
const mostZeroBytes = 64 * 1024 ** 2

/** A batch must save at least this share of the time per item. */
const leastGain = 0.1
/** More tell nothing more. */
const mostProbedItems = 1_024
const maxProbes = 5
const probeBudgetMs = 500
/** A larger batch is not tried: zeros for it would fill the memory of the process. */
const maxProbeBytes = 256 * 1024 ** 2

/**
 * Measures with zeros whether a full batch takes less time per item than requests one by one.
 *
 * A model that cannot be run with zeros, whose sizes are open and does not take 1 for them, or whose batches are too large to try, is taken
 * to gain.
 */
export async function batchingPays(
  config: ModelConfig,
  run: (batch: readonly Execution[]) => Promise<BatchResult>,
): Promise<BatchingProbe> {
  const batchSize = Math.min(config.max_batch_size ?? 0, mostItems(config))
  if (batchSize < 2) return { pays: (config.max_batch_size ?? 0) > 1 }
  try {
    if (batchSize * bytesOf(zeros(config)) > maxProbeBytes) return { pays: true }
    const one = zeros(config)
    const [alone, full] = await shortestMs(
      () => run([zeros(config)]),
      () => run(Array.from({ length: batchSize }, () => one)),
    )
    const batched = full / batchSize
    const round = (ms: number) => Math.round(ms * 1e3) / 1e3
    return {
      pays: batched <= alone * (1 - leastGain),
      figures: { alone: round(alone), batched: round(batched), batchSize },
    }
  } catch {
    return { pays: true }
  }
}

/** How many items a model may be tried with at once; 0 where one is too much. */
export function mostItems(config: ModelConfig): number {
  return Math.min(mostProbedItems, Math.floor(mostZeroBytes / itemBytes(config)))
}

/** Of the inputs of an item, at least 1; open sizes count as 1. */
export function itemBytes(config: ModelConfig): number {
  const bytes = config.input.reduce((sum, { data_type, dims, reshape }) => {
    const elements = (reshape?.shape ?? dims).reduce((product, size) => product * Math.abs(size), 1)
    return sum + elements * (elementBytes(datatypeOfConfig(data_type) ?? 'BYTES') || 4)
  }, 0)
  return Math.max(1, bytes)
}

/** One item of zeros. */
export function zeros(config: ModelConfig, batchSize = 1): Execution {
  const batched = (config.max_batch_size ?? 0) > 0
  const inputs = config.input
    .filter((input) => input.optional !== true)
    .map((input) => {
      const dims = (input.reshape?.shape ?? input.dims).map((size) => (size === -1 ? 1 : size))
      return filledTensor(input.name, input.data_type, batched ? [batchSize, ...dims] : dims)
    })
  return {
    inputs: new Map(inputs.map((tensor) => [tensor.name, tensor])),
    outputs: config.output.map((output) => output.name),
    batchSize,
    sequence: undefined,
    signal: undefined,
  }
}

function bytesOf({ inputs }: Execution): number {
  return [...inputs.values()].reduce((sum, { data }) => sum + data.byteLength, 0)
}

/**
 * Full batches between single items, so that what else the machine does, such as loading other models, disturbs both alike.
 *
 * @returns milliseconds of the shortest run of each.
 */
async function shortestMs(alone: Run, full: Run): Promise<readonly [alone: number, full: number]> {
  const taken = { alone: Infinity, full: Infinity }
  const measure = async (key: keyof typeof taken, run: Run): Promise<void> => {
    const beforeMs = nowMs()
    await checked(run)
    taken[key] = Math.min(taken[key], nowMs() - beforeMs)
  }
  await checked(alone)
  await checked(full)
  const startedMs = nowMs()
  for (let count = 0; count < maxProbes && nowMs() - startedMs < probeBudgetMs; count++) {
    await measure('alone', alone)
    await measure('full', full)
    await measure('alone', alone)
  }
  return [taken.alone, taken.full]
}

type Run = () => Promise<BatchResult>

async function checked(run: Run): Promise<void> {
  const { results } = await run()
  for (const result of results) if (result instanceof Error) throw result
}
