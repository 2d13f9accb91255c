import { cursorOf, keyOfCursor, orderKey, type OrderKey } from '../cache/order-key.js'
import type { RecentPage } from '../cache/result-cache.js'
import type { DetectionsMessage } from '../messages/detections-message.js'

/** A key before every other. */
const start = ''

/**
 * Pages of several nodes, asked with one query, as one page of at most `limit` results, newest first. The cursor is a place in the order of all
 * results and holds nothing of the nodes: any node goes on from it, also where one has come or gone.
 *
 * A result that two nodes give, since both keep theirs in one Redis, is given once.
 */
export function mergePages(pages: readonly RecentPage[], limit: number): RecentPage {
  // What a node has below its cursor is not known yet: what the others have there waits for the next page.
  const knownTo = greatest(
    pages.map(({ nextCursor }) => (nextCursor === undefined ? start : keyOfCursor(nextCursor))),
  )
  const byKey = new Map(pages.flatMap(({ items }) => items.map((item) => [keyOf(item), item] as const)))
  const known = [...byKey].filter(([key]) => key >= knownTo).sort(([a], [b]) => (a < b ? 1 : -1))
  const page = known.slice(0, limit)
  const items = page.map(([, item]) => item)
  const last = page.at(-1)
  if (known.length > limit && last !== undefined) return { items, nextCursor: cursorOf(last[0]) }
  if (knownTo !== start) return { items, nextCursor: cursorOf(knownTo) }
  // Whatever was left out is below a cursor, so that nothing was.
  return { items }
}

/** Wall time of the oldest result that a page may have; 0 where it reaches back to the first of all. */
export function pageFromMs({ items, nextCursor }: RecentPage): number {
  const last = items.at(-1)
  return nextCursor === undefined || last === undefined ? 0 : Date.parse(last.capturedAt)
}

function keyOf({ cameraId, seq, capturedAt }: DetectionsMessage): OrderKey {
  return orderKey({ cameraId, seq, capturedAtMs: Date.parse(capturedAt) })
}

function greatest(keys: readonly OrderKey[]): OrderKey {
  return keys.reduce((most, key) => (key > most ? key : most), start)
}
