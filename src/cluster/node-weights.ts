/** What a node can do, as it says. */
export type NodeCapacity = Readonly<{
  cores: number
  /** Pictures a second that it could analyse, measured on its cameras; `null` while it has not had any for long enough. */
  framesPerSecond: number | null
}>

/** Nodes this near to what is usual for their cores count as usual: what they measure differs from minute to minute. */
const alike = 0.25

/**
 * How much of the work each node should have. Where nothing was measured, by cores; else by what was measured, with what is usual for its cores
 * for a node that has measured nothing or about that.
 */
export function nodeWeights(nodes: readonly NodeCapacity[]): readonly number[] {
  const perCore = nodes
    .flatMap(({ cores, framesPerSecond }) => (framesPerSecond === null ? [] : [framesPerSecond / cores]))
    .sort((a, b) => a - b)
  const usual = perCore[Math.floor((perCore.length - 1) / 2)] ?? 1
  return nodes.map(({ cores, framesPerSecond }) => {
    const expected = usual * cores
    const isUsual = framesPerSecond === null || Math.abs(framesPerSecond - expected) <= alike * expected
    return isUsual ? expected : framesPerSecond
  })
}
