import { type Configuration, keyOf } from './search-space.js'
import type { Worth } from './objective.js'
import type { RepeatedConfiguration, RatioSpread } from './optimize-report.js'
import type { Trials } from './trials.js'

/**
 * Measures configurations in turn, all of them in each round, since a machine is not as fast at every moment: what is compared are ratios
 * within a round.
 *
 * @param configurations - the first is the one that the others are compared with.
 * @param name - of the rounds, for the journal.
 * @returns those that could be measured in every round, in their order.
 */
export async function measureInTurn(
  trials: Trials,
  name: string,
  configurations: readonly Configuration[],
  rounds: number,
): Promise<readonly RepeatedConfiguration[]> {
  const each = [...new Map(configurations.map((one) => [keyOf(one), one])).values()]
  const worths = new Map<string, Worth[]>(each.map((one) => [keyOf(one), []]))
  for (let round = 1; round <= rounds; round++)
    for (const one of each) {
      const { worth } = await trials.measure(`${name} ${round}`, one)
      if (worth !== undefined) worths.get(keyOf(one))?.push(worth)
    }
  const [first] = each
  const base = first === undefined ? [] : (worths.get(keyOf(first)) ?? [])
  return each.flatMap((configuration) => {
    const own = worths.get(keyOf(configuration)) ?? []
    return own.length === rounds && base.length === rounds ? [repeated(configuration, own, base, trials)] : []
  })
}

function repeated(
  configuration: Configuration,
  worths: readonly Worth[],
  base: readonly Worth[],
  trials: Trials,
): RepeatedConfiguration {
  const ratios = (value: (worth: Worth) => number) =>
    spreadOf(worths.map((worth, round) => value(worth) / value(base[round]!)))
  return {
    configuration,
    worth: middle(worths),
    throughput: ratios(({ perSecond }) => perSecond),
    p99: ratios(({ p99Ms }) => p99Ms),
    gain: spreadOf(worths.map((worth, round) => trials.gain(worth, base[round]!))),
  }
}

/** Of an odd number the middle one; of an even one the mean of the two in the middle. */
export function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

export function spreadOf(values: readonly number[]): RatioSpread {
  return { median: medianOf(values), min: Math.min(...values), max: Math.max(...values) }
}

/** Medians, one by one; limits count as broken that are broken in most rounds. */
function middle(worths: readonly Worth[]): Worth {
  const of = (value: (worth: Worth) => number) => medianOf(worths.map(value))
  const broken = worths.filter((worth) => worth.broken.length > 0)
  return {
    level: of(({ level }) => level),
    perSecond: of(({ perSecond }) => perSecond),
    p50Ms: of(({ p50Ms }) => p50Ms),
    p99Ms: of(({ p99Ms }) => p99Ms),
    cores: of(({ cores }) => cores),
    peakBytes: Math.max(...worths.map(({ peakBytes }) => peakBytes)),
    steady: worths.every(({ steady }) => steady),
    cutShort: worths.some(({ cutShort }) => cutShort),
    broken: broken.length * 2 > worths.length ? (broken[0]?.broken ?? []) : [],
  }
}
