import { seededRandom } from '../perf/arrivals.js'
import type { SpacePlace } from './search-space.js'
import { expectedImprovement, Surrogate } from './surrogate.js'

export type SearchOptions = Readonly<{
  /** Most trials. All candidates are tried where there are no more of them. */
  trials: number
  seed: number
  /** Candidates that are tried first, by their index. */
  first?: readonly number[]
  /** Trials without a better one, behind those that only explore, after which nothing better is expected. */
  patience: number
}>

/** Trials that explore before anything is expected: as many as there are dimensions, at least. */
const leastExploring = 6
/** A gain that is not worth another trial, in the logarithm of the objective. */
const leastGain = 0.003

/**
 * Tries candidates one after another, each where it is expected to be better than the best one so far by most; all of them where that is
 * no more than `trials`.
 *
 * @param places - of the candidates.
 * @param tried - gives the logarithm of the objective, the higher the better; `undefined` where the candidate cannot be used.
 * @returns indices of the candidates that were tried, in their order.
 */
export async function searchCandidates(
  places: readonly SpacePlace[],
  { trials, seed, first = [], patience }: SearchOptions,
  tried: (index: number) => Promise<number | undefined>,
): Promise<readonly number[]> {
  const random = seededRandom(seed)
  const order: number[] = []
  const values = new Map<number, number | undefined>()
  const attempt = async (index: number): Promise<void> => {
    order.push(index)
    values.set(index, await tried(index))
  }
  for (const index of first) if (!values.has(index) && order.length < trials) await attempt(index)
  if (places.length <= trials) {
    for (const index of shuffled(places.length, random)) if (!values.has(index)) await attempt(index)
    return order
  }
  const exploring = Math.min(trials, Math.max(leastExploring, (places[0]?.length ?? 0) + 1))
  while (order.length < exploring) await attempt(farthest(places, order, random))
  let best = bestOf(values)
  let since = 0
  while (order.length < trials && since < patience) {
    const next = mostPromising(places, values)
    if (next === undefined) return order
    await attempt(next)
    const now = bestOf(values)
    since = now > best + leastGain ? 0 : since + 1
    best = Math.max(best, now)
  }
  return order
}

function bestOf(values: ReadonlyMap<number, number | undefined>): number {
  return Math.max(...[...values.values()].map((value) => value ?? -Infinity))
}

/** One that has not been tried; what failed counts as the worst that was seen. */
function mostPromising(
  places: readonly SpacePlace[],
  values: ReadonlyMap<number, number | undefined>,
): number | undefined {
  const known = [...values.values()].filter((value) => value !== undefined)
  const [best, worst] = known.length === 0 ? [0, 0] : [Math.max(...known), Math.min(...known)]
  const model = new Surrogate(
    [...values.keys()].map((index) => places[index]!),
    [...values.values()].map((value) => value ?? worst),
  )
  let next: number | undefined
  let most = -Infinity
  for (const [index, place] of places.entries()) {
    if (values.has(index)) continue
    const gain = expectedImprovement(model.at(place), best)
    if (gain > most) [next, most] = [index, gain]
  }
  return next
}

/** Of a handful at random, the one that has least in common with those that were tried. */
function farthest(places: readonly SpacePlace[], tried: readonly number[], random: () => number): number {
  const free = places.map((_, index) => index).filter((index) => !tried.includes(index))
  const some = Array.from({ length: 32 }, () => free[Math.floor(random() * free.length)]!)
  const nearness = (index: number) =>
    Math.min(...tried.map((other) => distance(places[index]!, places[other]!)), Infinity)
  return some.reduce((a, b) => (nearness(b) > nearness(a) ? b : a))
}

function distance(a: SpacePlace, b: SpacePlace): number {
  return a.reduce((sum, { at, isOnScale }, index) => {
    const other = b[index]!.at
    return sum + (isOnScale ? Math.abs(at - other) : Number(at !== other))
  }, 0)
}

function shuffled(length: number, random: () => number): readonly number[] {
  const all = Array.from({ length }, (_, index) => index)
  for (let last = length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1))
    ;[all[last], all[other]] = [all[other]!, all[last]!]
  }
  return all
}
