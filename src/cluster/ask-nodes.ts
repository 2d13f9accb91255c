/** A node that left the cluster while this one was in it. */
export type GoneNode = Readonly<{
  node: string
  /** When this node learnt of it; wall time. */
  leftMs: number
}>

/** The nodes beside this one. */
export type OtherNodes = Readonly<{
  nodes: readonly Readonly<{ node: string; url: string }>[]
  gone: readonly GoneNode[]
  /** Why there may be others that are not known; undefined where all are. */
  reason: string | undefined
}>

export type NodesAnswers<T> = Readonly<{
  answers: readonly Readonly<{ node: string; value: T }>[]
  failures: readonly Readonly<{ node: string; error: unknown }>[]
}>

/** Asks all of these nodes at once. Never rejects. */
export async function askNodes<N extends Readonly<{ node: string }>, T>(
  nodes: readonly N[],
  ask: (node: N) => Promise<T>,
): Promise<NodesAnswers<T>> {
  const all = await Promise.all(
    nodes.map((each) =>
      ask(each).then(
        (value) => ({ node: each.node, value }),
        (error: unknown) => ({ node: each.node, error }),
      ),
    ),
  )
  return {
    answers: all.filter((one) => 'value' in one),
    failures: all.filter((one) => 'error' in one),
  }
}

/** In words for people, what may be missing in answers about a time that begins with `fromMs`. */
export function missingNodes(
  { failures }: Pick<NodesAnswers<unknown>, 'failures'>,
  { gone, reason }: Omit<OtherNodes, 'nodes'>,
  fromMs: number,
): readonly string[] {
  return [
    ...failures.map(
      ({ node, error }) => `${node}: ${error instanceof Error ? error.message : String(error)}`,
    ),
    ...gone
      .filter(({ leftMs }) => leftMs >= fromMs)
      .map(({ node, leftMs }) => `${node}: it left the cluster by ${new Date(leftMs).toISOString()}`),
    ...(reason === undefined ? [] : [reason]),
  ]
}
