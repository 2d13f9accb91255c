/** What is known of a model for cutting it between its nodes. */
export type CutCosts = Readonly<{
  /** Work of each node. */
  work: readonly number[]
  /** Bytes that cross behind each node; `Infinity` where it cannot be cut. One less than nodes. */
  crossing: readonly number[]
}>

/**
 * Chooses where to cut so that the fewest bytes cross, among those ways in which no part has more than its share of the work and
 * `slack` of it; where there is none, the slack is doubled until there is.
 *
 * @returns for each part but the last, the index of its last node; `undefined` if the graph has too few places.
 */
export function chooseCuts(costs: CutCosts, stages: number, slack = 0.2): readonly number[] | undefined {
  const total = costs.work.reduce((sum, work) => sum + work, 0)
  const places = costs.crossing.filter(Number.isFinite).length
  if (places < stages - 1) return undefined
  for (let most = 1 + slack; ; most = 1 + 2 * (most - 1)) {
    const limit = Math.min(total, (total / stages) * most)
    const cuts = narrowest(costs, stages, limit)
    if (cuts !== undefined || limit === total) return cuts
  }
}

type Step = Readonly<{ bytes: number; cuts: readonly number[] }>

/** Dynamic programming over places: the best way to end a given number of parts at each place. */
function narrowest(
  { work, crossing }: CutCosts,
  stages: number,
  limit: number,
): readonly number[] | undefined {
  const upTo = [0]
  for (const each of work) upTo.push((upTo.at(-1) ?? 0) + each)
  const between = (first: number, last: number) => upTo[last + 1]! - upTo[first]!
  // A part of no work may always join another: rounding must not forbid it.
  const allowed = (first: number, last: number) => between(first, last) <= limit * (1 + 1e-9)
  let best = new Map<number, Step>()
  for (let place = 0; place < crossing.length; place++)
    if (Number.isFinite(crossing[place]) && allowed(0, place))
      best.set(place, { bytes: crossing[place]!, cuts: [place] })
  for (let stage = 2; stage < stages; stage++) {
    const next = new Map<number, Step>()
    for (const [from, step] of best) {
      for (let place = from + 1; place < crossing.length && allowed(from + 1, place); place++) {
        const bytes = step.bytes + crossing[place]!
        if (bytes < (next.get(place)?.bytes ?? Infinity))
          next.set(place, { bytes, cuts: [...step.cuts, place] })
      }
    }
    best = next
  }
  let chosen: Step | undefined
  for (const [place, step] of best)
    if (allowed(place + 1, work.length - 1) && step.bytes < (chosen?.bytes ?? Infinity)) chosen = step
  return chosen?.cuts
}
