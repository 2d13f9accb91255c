import type { ClusterHeadroom, HeadroomView } from '../../api/gantry.js'

/** A node that was asked for its room. */
export type NodeRoom = Readonly<{
  node: string
  /** Of the cameras that come, as many parts as this node has slots. */
  slots: number
  view: Pick<HeadroomView, 'cameras' | 'limitedBy' | 'reason'>
}>

/**
 * Room of all nodes. Cameras go to nodes by their slots and not by where there is room: `cameras` is how many may come, as ids fall on average,
 * before the first node has no room.
 */
export function clusterHeadroom(nodes: readonly NodeRoom[], missing: readonly string[]): ClusterHeadroom {
  const sharing = nodes.filter(({ slots }) => slots > 0)
  const slots = sharing.reduce((sum, node) => sum + node.slots, 0)
  const rooms = sharing.map(({ node, slots: own, view }) => ({
    node,
    spread: view.cameras === null ? null : Math.floor((view.cameras * slots) / own),
  }))
  const [first] = rooms
    .flatMap(({ node, spread }) => (spread === null ? [] : [{ node, spread }]))
    .sort(bySpread)
  const unknown = rooms.filter(({ spread }) => spread === null).map(({ node }) => node)
  const isKnown = first !== undefined && unknown.length === 0 && missing.length === 0
  const known = nodes.flatMap(({ view }) => view.cameras ?? [])
  return {
    cameras: isKnown ? first.spread : null,
    reason: isKnown
      ? `with one more, as ids fall on average, node ${first.node} has no room`
      : `not known of all nodes: ${[...unknown.map((node) => `${node} has measured nothing yet`), ...missing].join('; ') || 'none has slots now'}`,
    sum: known.reduce((sum, cameras) => sum + cameras, 0),
    nodes: nodes.map(({ node, slots: own, view: { cameras, limitedBy, reason } }) => {
      return { node, slots: own, cameras, limitedBy, reason }
    }),
    ...(missing.length > 0 && { incomplete: missing }),
  }
}

const bySpread = (a: Readonly<{ spread: number }>, b: Readonly<{ spread: number }>) => a.spread - b.spread
