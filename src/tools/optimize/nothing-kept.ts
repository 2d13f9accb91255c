import type { Worth } from './objective.js'
import { OptimizeLimitsError } from './optimize-errors.js'

/** What was measured of a configuration, under its name for people. `score` is higher the nearer it is to the limits. */
export type MeasuredRun = Readonly<{ name: string; worth: Worth; score: number }>

/**
 * Why a search ends without a result.
 *
 * @param runs - of the search where nothing kept the limits there, else those of the turns that followed: a configuration that kept them
 *   once has no limit in its figures of the search that could be told.
 * @param again - they are of the turns.
 */
export function nothingKept(
  tried: number,
  runs: readonly MeasuredRun[],
  again: boolean,
): OptimizeLimitsError {
  const nearest = runs.toSorted((a, b) => b.score - a.score)[0]
  const told =
    nearest === undefined
      ? `none of them ${again ? 'runs again' : 'runs'}`
      : `the nearest, ${nearest.name}, has ${nearest.worth.broken.join(', ')}`
  return again
    ? new OptimizeLimitsError(
        `of ${tried} configurations those that keep the limits did not when they were measured again: ${told}`,
        'Was the machine busy with something else? End that, and measure anew with --restart; or allow more.',
      )
    : new OptimizeLimitsError(`none of ${tried} configurations keeps the limits: ${told}`)
}
