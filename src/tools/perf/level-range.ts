import { PerfSettingError } from './perf-errors.js'

/** Levels of a load from the first to the last, both included. */
export type LevelRange = Readonly<{ first: number; last: number; step: number }>

export type RangeRules = Readonly<{
  /** For people: `--concurrency`. */
  flag: string
  whole: boolean
  most: number
  /** Of a range that names none. */
  step(first: number, last: number): number
}>

/**
 * Reads `a`, `a:b` or `a:b:step`.
 *
 * @throws PerfSettingError `GANTRY_USAGE`
 */
export function levelRange(text: string, { flag, whole, most, step: usualStep }: RangeRules): LevelRange {
  const kind = whole ? 'whole numbers' : 'numbers'
  const wrong = (problem: string) =>
    new PerfSettingError(
      `${flag} ${text}: ${problem}`,
      `Write ${flag} A, A:B or A:B:STEP with ${kind} from 1 to ${most}.`,
    )
  const parts = text.split(':')
  const numbers = parts.map(Number)
  if (parts.length > 3 || parts.some((part) => part.trim() === '') || numbers.some(Number.isNaN))
    throw wrong('it is no range')
  if (whole && !numbers.every(Number.isInteger)) throw wrong('it has numbers that are not whole')
  const [first = 1, last = first] = numbers
  if (first <= 0 || last > most || last < first)
    throw wrong(last < first ? 'it ends before it begins' : 'it is out of range')
  const step = numbers[2] ?? usualStep(first, last)
  if (!(step > 0)) throw wrong('its step is not above 0')
  return { first, last, step }
}

/** Every level of a range. */
export function levelsOf({ first, last, step }: LevelRange): readonly number[] {
  const count = Math.floor((last - first) / step + 1e-9) + 1
  return Array.from({ length: count }, (_, index) => Number((first + index * step).toPrecision(12)))
}
