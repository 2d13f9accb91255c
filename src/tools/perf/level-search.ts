import { type LevelRange, levelsOf } from './level-range.js'

/** What is decided by: whether a level keeps the limit, or that nothing more can be measured. */
export type LevelVerdict = 'kept' | 'broken' | 'ended'

/** Measures a level. */
export type MeasureOne = (level: number) => Promise<LevelVerdict>

/** Every level of a range from the first on, until one breaks the limit. */
export async function searchInTurn(range: LevelRange, measure: MeasureOne): Promise<void> {
  for (const level of levelsOf(range)) if ((await measure(level)) !== 'kept') return
}

/**
 * The highest level that keeps the limit, by halves: both ends, then the middle of what is left, until that is no wider than a step.
 * It holds where latency grows with the level.
 */
export async function searchByHalves(range: LevelRange, measure: MeasureOne): Promise<void> {
  const levels = levelsOf(range)
  let [kept, broken] = [0, levels.length - 1]
  if ((await measure(levels[kept]!)) !== 'kept' || broken === 0) return
  if ((await measure(levels[broken]!)) !== 'broken') return
  while (broken - kept > 1) {
    const middle = (kept + broken) >> 1
    const verdict = await measure(levels[middle]!)
    if (verdict === 'ended') return
    if (verdict === 'kept') kept = middle
    else broken = middle
  }
}
