import type { DetectionsText } from '../messages/detections-json.js'
import { labelInJson, parseDetectionsJson } from '../messages/detections-json.js'
import type { DetectionsMessage } from '../messages/detections-message.js'
import { wallMs } from '../lifecycle/clock.js'
import type { PlacedRecord, RangeQuery } from '../store/record.js'
import { cursorOf, keyOfCursor, orderKey, placeOfKey } from './order-key.js'
import type { CacheHealth, RecentPage, RecentQuery, ResultCache } from './result-cache.js'

/** What is asked of the store. */
export type PastResults = Readonly<{
  range(query: RangeQuery): Promise<readonly PlacedRecord[]>
  forget(cameraId: string): Promise<void>
}>

/** {@link ResultCache} whose past is that of the store, over restarts; the latest of each camera is that of another cache. */
export class StoredResults implements ResultCache {
  constructor(
    readonly hot: ResultCache,
    readonly store: PastResults,
    readonly maxAgeMs: number,
  ) {}

  get health(): CacheHealth {
    return this.hot.health
  }

  start(): void {
    this.hot.start()
  }

  put(result: DetectionsText): void {
    this.hot.put(result)
  }

  latest(cameraId: string): Promise<DetectionsMessage | undefined> {
    return this.hot.latest(cameraId)
  }

  /** @throws CursorError, StoreReadError */
  async recent({ cameraId, label, fromMs, toMs, cursor, limit }: RecentQuery): Promise<RecentPage> {
    const found = await this.store.range({
      ...(cameraId !== undefined && { cameraId }),
      fromMs: Math.ceil(Math.max(fromMs ?? 0, wallMs() - this.maxAgeMs)),
      toMs: toMs === undefined ? Number.MAX_SAFE_INTEGER : Math.floor(toMs) + 1,
      ...(cursor !== undefined && { before: placeOfKey(keyOfCursor(cursor)) }),
      ...(label !== undefined && { contains: labelInJson(label) }),
      limit: limit + 1,
    })
    const page = found.slice(0, limit)
    const last = page.at(-1)
    const items = page.map(({ value }) => parseDetectionsJson(Buffer.from(value).toString()))
    if (found.length <= limit || last === undefined) return { items }
    return { items, nextCursor: cursorOf(orderKey({ ...last, capturedAtMs: last.timeMs })) }
  }

  async forget(cameraId: string): Promise<void> {
    await this.store.forget(cameraId)
    await this.hot.forget(cameraId)
  }

  stop(): Promise<void> {
    return this.hot.stop()
  }
}
