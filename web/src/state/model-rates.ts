import type { Model, ModelList, ModelWork } from '../api/types.js'

/** What a version of a model did lately; sums where nothing came lately. */
export type Rates = Readonly<{
  requestsPerSecond: number
  failuresPerSecond: number
  /** Frames of cameras. */
  framesPerSecond: number
  /** Mean of a request, by what it spent its time on; `null` before the first. */
  meanMs: Readonly<Record<(typeof parts)[number], number>> | null
  /** Items in a run, on average; `null` before the first. */
  itemsPerRun: number | null
}>

export const parts = ['queue', 'compute_input', 'compute_infer', 'compute_output'] as const

export type Sample = Readonly<{ atMs: number; list: ModelList }>

const nothing: Rates = {
  requestsPerSecond: 0,
  failuresPerSecond: 0,
  framesPerSecond: 0,
  meanMs: null,
  itemsPerRun: null,
}

/** Rates of one version, between the first and the last of some samples. Counting may have begun anew in between. */
export function ratesOf(samples: readonly Sample[], name: string, version: string): Rates {
  const last = samples.at(-1)
  const [first] = samples
  if (first === undefined || last === undefined) return nothing
  const [then, now] = [of(first.list, name), of(last.list, name)]
  const seconds = (last.atMs - first.atMs) / 1_000
  const perSecond = (before = 0, after = 0): number =>
    seconds <= 0 || after < before ? 0 : (after - before) / seconds
  const [workThen, work] = [workOf(then, version), workOf(now, version)]
  const [framesThen, frames] = [framesOf(then, version), framesOf(now, version)]
  return {
    // Of what was not there before nothing is known that came lately.
    requestsPerSecond: workThen
      ? perSecond(workThen.durations.success.count, work?.durations.success.count)
      : 0,
    failuresPerSecond: workThen ? perSecond(workThen.durations.fail.count, work?.durations.fail.count) : 0,
    framesPerSecond: framesThen === undefined ? 0 : perSecond(framesThen, frames),
    ...means(workThen, work),
  }
}

/** Of what came between the two; of all since the load where nothing did. */
function means(
  then: ModelWork | undefined,
  now: ModelWork | undefined,
): Pick<Rates, 'meanMs' | 'itemsPerRun'> {
  if (now === undefined) return { meanMs: null, itemsPerRun: null }
  const isLater = then !== undefined && now.durations.queue.count > then.durations.queue.count
  const from = isLater ? then : undefined
  const mean = (part: (typeof parts)[number]): number => {
    const count = now.durations[part].count - (from?.durations[part].count ?? 0)
    return count <= 0 ? 0 : (now.durations[part].ms - (from?.durations[part].ms ?? 0)) / count
  }
  const runs = now.runs - (from?.runs ?? 0)
  return {
    meanMs:
      now.durations.queue.count === 0
        ? null
        : (Object.fromEntries(parts.map((part) => [part, mean(part)])) as NonNullable<Rates['meanMs']>),
    itemsPerRun: runs <= 0 ? null : (now.items - (from?.items ?? 0)) / runs,
  }
}

function of(list: ModelList, name: string): Model | undefined {
  return list.items.find((model) => model.name === name)
}

function workOf(model: Model | undefined, version: string): ModelWork | undefined {
  return model?.versions.find((each) => each.version === version)?.work ?? undefined
}

function framesOf(model: Model | undefined, version: string): number | undefined {
  return model?.forCameras.find((each) => each.version === version)?.frames
}
