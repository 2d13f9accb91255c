import {
  drawsOf,
  type Draws,
  type Interval,
  intervalOf,
  mapOfDraw,
  resampled,
  type ResampledClass,
} from './bootstrap.js'
import type { ModelRun } from './model-run.js'
import type { ModelScores } from './model-scores.js'

export type BootstrapOptions = Readonly<{ draws: number; seed: number; signal?: AbortSignal }>

/** How much of a mAP is chance: intervals by drawing pictures anew. */
export type Certainty = Readonly<{
  /** Of the mAP of each model; undefined where it has none. */
  maps: readonly (Interval | undefined)[]
  /** Of each model after the first: its mAP less that of the first, over pictures that both have. */
  differences: readonly (Difference | undefined)[]
}>

export type Difference = Readonly<{
  map: number
  interval: Interval
  /** Share of the draws in which the model is better than the first. */
  better: number
  pictures: number
}>

/** Draws between which others get their turn, and a signal is looked at. */
const drawsAtOnce = 20

/**
 * Draws pictures with repetition and looks what the mAP of each would be. All models are looked at with the same draws, so that pictures
 * that are hard for all of them do not count as a difference.
 *
 * @param runs - with their scores, in the same order.
 */
export async function certaintyOf(
  runs: readonly ModelRun[],
  scores: readonly ModelScores[],
  { draws, seed, signal }: BootstrapOptions,
): Promise<Certainty> {
  const places = [...new Set(runs.flatMap(({ samples }) => [...samples.keys()]))].sort((a, b) => a - b)
  const drawn = drawsOf(places.length, draws, seed)
  const classes = runs.map((run, index) => classesOf(run, scores[index]!, places))
  const maps: (number | undefined)[][] = []
  for (const each of classes) maps.push(await mapsOf(each, drawn, signal))
  const [first = []] = maps
  return {
    maps: maps.map((values) => interval(values)),
    differences: maps.slice(1).map((values, index) => {
      const [a, b] = [runs[0]!, runs[index + 1]!]
      return sameSamples(a, b)
        ? difference(scores[0]!, scores[index + 1]!, first, values, places.length)
        : undefined
    }),
  }
}

/** Pictures of a run by their place among all that any run has. */
function classesOf(
  { samples }: ModelRun,
  { curves }: ModelScores,
  places: readonly number[],
): ResampledClass[] {
  const placeOf = Int32Array.from(samples.keys(), (index) => places.indexOf(index))
  return curves.map(({ ranking, matches }) => {
    const positives = new Float64Array(places.length)
    matches.forEach((match, picture) => (positives[placeOf[picture]!] = match?.positives ?? 0))
    const moved = { ...ranking, pictures: ranking.pictures.map((picture) => placeOf[picture]!) }
    return resampled(moved, positives)
  })
}

async function mapsOf(
  classes: readonly ResampledClass[],
  draws: Draws,
  signal: AbortSignal | undefined,
): Promise<(number | undefined)[]> {
  const values: (number | undefined)[] = []
  for (const [index, times] of draws.entries()) {
    if (index % drawsAtOnce === 0) await new Promise((resolve) => setImmediate(resolve))
    if (signal?.aborted) break
    values.push(mapOfDraw(classes, times))
  }
  return values
}

function interval(values: readonly (number | undefined)[]): Interval | undefined {
  const known = values.filter((value) => value !== undefined)
  return known.length === 0 ? undefined : intervalOf(known)
}

function sameSamples(a: ModelRun, b: ModelRun): boolean {
  return a.samples.size === b.samples.size && [...a.samples.keys()].every((index) => b.samples.has(index))
}

function difference(
  first: ModelScores,
  other: ModelScores,
  ofFirst: readonly (number | undefined)[],
  ofOther: readonly (number | undefined)[],
  pictures: number,
): Difference | undefined {
  const { map: a } = first.summary
  const { map: b } = other.summary
  const values = ofOther.flatMap((value, draw) => {
    const base = ofFirst[draw]
    return value === undefined || base === undefined ? [] : [value - base]
  })
  if (a === undefined || b === undefined || values.length === 0) return undefined
  const better = values.filter((value) => value > 0).length / values.length
  return { map: b - a, interval: intervalOf(values), better, pictures }
}
