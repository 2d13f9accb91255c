import type { Service } from '../lifecycle/service.js'
import type { DetectionsText } from '../messages/detections-json.js'
import type { DetectionsMessage } from '../messages/detections-message.js'

export type RecentQuery = Readonly<{
  cameraId?: string
  /** Keep results in which at least one detection has this label. */
  label?: string
  /** Wall time range, both ends included. */
  fromMs?: number
  toMs?: number
  /** 1..1000. */
  limit: number
  /** `nextCursor` of the page before. */
  cursor?: string
}>

/** Newest first. `nextCursor` is absent on the last page. */
export type RecentPage = Readonly<{
  items: readonly DetectionsMessage[]
  nextCursor?: string
  /** Of a cluster: nodes whose results may be missing on this page, each with the reason; absent where none are. */
  incomplete?: readonly string[]
}>

export type CacheHealth = Readonly<{
  backend: 'memory' | 'redis'
  state: 'connecting' | 'up' | 'down' | 'stopped'
  reason: string
}>

/** Latest result of each camera and a bounded window of recent ones. */
export interface ResultCache extends Service {
  readonly health: CacheHealth
  start(): void
  /** Never blocks, never throws: with the far side down the result is not cached, and that is counted. */
  put(result: DetectionsText): void
  /** @throws CacheUnavailableError `GANTRY_CACHE_UNAVAILABLE` within the command timeout when the far side is down. */
  latest(cameraId: string): Promise<DetectionsMessage | undefined>
  /** @throws CursorError `GANTRY_CURSOR` for a cursor this cache did not give. */
  recent(query: RecentQuery): Promise<RecentPage>
  forget(cameraId: string): Promise<void>
  stop(): Promise<void>
}
