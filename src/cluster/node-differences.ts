import type { MemberData } from './member-data.js'

/**
 * The layout that counts where nodes have several: that of the nodes which run most slots, then the one that most nodes have. All
 * members of a group come to the same.
 */
export function sharedLayout(members: readonly Pick<MemberData, 'layout' | 'held'>[]): string | undefined {
  const byLayout = new Map<string, { layout: string; slots: number; nodes: number }>()
  for (const { layout, held } of members) {
    const { slots = 0, nodes = 0 } = byLayout.get(layout) ?? {}
    byLayout.set(layout, { layout, slots: slots + held.size, nodes: nodes + 1 })
  }
  const [first] = [...byLayout.values()].sort(
    (a, b) => b.slots - a.slots || b.nodes - a.nodes || (a.layout < b.layout ? -1 : 1),
  )
  return first?.layout
}

/** What keeps this node out of a group with these others; undefined where nothing does. */
export function keptOutBy(own: MemberData, others: readonly MemberData[]): string | undefined {
  const layout = sharedLayout([own, ...others])
  const other = others.find((each) => each.layout === layout)
  if (own.layout === layout || other === undefined) return undefined
  return (
    `its settings are not those of the other nodes: here ${own.layout}; on node ${other.node} ${other.layout}. ` +
    'Give this node the same cluster.topics and cluster.slots, or a cluster.id of its own'
  )
}

/** What this node and others differ in though they share cameras: all of it is told, and none of it keeps them apart. */
export function differences(own: MemberData, others: readonly MemberData[]): readonly string[] {
  const layout = sharedLayout([own, ...others])
  return others.flatMap(({ node, url, layout: ofOther, models }) => {
    if (node === own.node && url !== own.url)
      return [`the node at ${url} calls itself ${node}, too: give each node a cluster.node of its own`]
    if (own.layout === layout && ofOther !== layout)
      return [`node ${node} gets no cameras: it has ${ofOther}, and the others ${own.layout}`]
    if (models !== own.models && models !== '' && own.models !== '')
      return [`node ${node} runs ${models} for its cameras, and this one ${own.models}`]
    return []
  })
}
