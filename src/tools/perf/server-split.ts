import type {
  KServeClient,
  ModelRef,
  ServedConfig,
  ServedStatistics,
  StatisticPart,
} from '../client/kserve-client.js'

/** What a server has counted of a model, and of the steps of an ensemble, those of ensembles in it included. */
export type ServerCounters = Readonly<{
  model: readonly ServedStatistics[]
  steps: readonly (readonly ServedStatistics[])[]
}>

/** Mean microseconds of a request in the server; of an ensemble those of its steps together. */
export type ServerSplit = Readonly<{
  queue: number
  computeInput: number
  computeInfer: number
  computeOutput: number
  /** Where the model has a response cache. */
  cacheHit?: number
  cacheMiss?: number
}>

/** Ensembles in ensembles; deeper ones are in a circle. */
const mostDepth = 16

/** Asks for the counters of a model: undefined of a server without statistics. */
export type CountersReader = () => Promise<ServerCounters | undefined>

/**
 * How the counters of a model are read.
 *
 * @param config - undefined of a server that tells none; its steps are not known then.
 */
export async function countersReader(
  client: KServeClient,
  model: ModelRef,
  config: ServedConfig | undefined,
): Promise<CountersReader> {
  const steps = await allSteps(client, config, mostDepth)
  return async () => {
    const own = await client.statistics(model)
    if (own === undefined) return undefined
    const ofSteps = await Promise.all(steps.map((step) => client.statistics(step)))
    return { model: own, steps: ofSteps.map((step) => step ?? []) }
  }
}

async function allSteps(
  client: KServeClient,
  config: ServedConfig | undefined,
  depth: number,
): Promise<readonly ModelRef[]> {
  if (config === undefined || depth === 0) return []
  const inner = await Promise.all(
    config.steps.map(async (step) => {
      const below = await allSteps(client, await client.modelConfig(step), depth - 1)
      return below.length === 0 ? [step] : below
    }),
  )
  // A model of two steps is counted once: its counters are of both.
  const all = new Map(inner.flat().map((step) => [`${step.name}/${step.version ?? ''}`, step]))
  return [...all.values()]
}

/** What happened between two readings; undefined where no request of the model did. */
export function splitBetween(before: ServerCounters, after: ServerCounters): ServerSplit | undefined {
  const requests = grown(before.model, after.model, 'success', 'count')
  if (requests <= 0) return undefined
  const pairs =
    after.steps.length === 0
      ? [[before.model, after.model] as const]
      : after.steps.map((step, index) => [before.steps[index] ?? [], step] as const)
  const us = (part: StatisticPart) =>
    pairs.reduce((sum, [from, to]) => sum + grown(from, to, part, 'ns'), 0) / requests / 1e3
  const cached =
    grown(before.model, after.model, 'cache_hit', 'count') +
    grown(before.model, after.model, 'cache_miss', 'count')
  return {
    queue: us('queue'),
    computeInput: us('compute_input'),
    computeInfer: us('compute_infer'),
    computeOutput: us('compute_output'),
    ...(cached > 0 && { cacheHit: us('cache_hit'), cacheMiss: us('cache_miss') }),
  }
}

/** A version that was loaded anew counts from 0: what it has then is what grew. */
function grown(
  before: readonly ServedStatistics[],
  after: readonly ServedStatistics[],
  part: StatisticPart,
  unit: 'count' | 'ns',
): number {
  return after.reduce((sum, { version, parts }) => {
    const now = parts[part][unit]
    const then = before.find((one) => one.version === version)?.parts[part][unit] ?? 0
    return sum + (now >= then ? now - then : now)
  }, 0)
}
