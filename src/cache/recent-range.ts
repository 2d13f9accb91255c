import { keyOfCursor, paddedTime, type OrderKey } from './order-key.js'
import type { RecentQuery } from './result-cache.js'

/** Keys a query may return: `atLeast <= key < below`. */
export type RecentRange = Readonly<{ atLeast: OrderKey; below: OrderKey }>

/** Text after every key. */
const end = ':'

/**
 * @param oldestMs - results captured before this wall time have expired.
 * @throws CursorError
 */
export function recentRange(query: RecentQuery, oldestMs: number): RecentRange {
  const fromMs = Math.max(query.fromMs ?? 0, oldestMs)
  const belowTime = query.toMs === undefined ? end : paddedTime(Math.floor(query.toMs) + 1)
  const belowCursor = query.cursor === undefined ? end : keyOfCursor(query.cursor)
  return { atLeast: paddedTime(Math.ceil(fromMs)), below: belowTime < belowCursor ? belowTime : belowCursor }
}
