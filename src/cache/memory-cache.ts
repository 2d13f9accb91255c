import { LRUCache } from 'lru-cache'
import type { CacheConfig } from '../config/outputs.js'
import { labelInJson, parseDetectionsJson, type DetectionsText } from '../messages/detections-json.js'
import type { DetectionsMessage } from '../messages/detections-message.js'
import { KeptText } from '../messages/kept-text.js'
import { wallMs } from '../lifecycle/clock.js'
import type { ServiceMetrics } from '../metrics/service-metrics.js'
import { cursorOf, orderKey } from './order-key.js'
import { recentRange, type RecentRange } from './recent-range.js'
import { RecentWindow, type RecentEntry } from './recent-window.js'
import type { CacheHealth, RecentPage, RecentQuery, ResultCache } from './result-cache.js'

/** Cameras remembered; the one silent for longest is forgotten first. */
const maxCameras = 4_096
/** The clock is read each time: a reading that is kept wakes the process up again to forget it, after almost every result. */
const clock = { ttlResolution: 0 }

export type CacheLimits = Pick<CacheConfig, 'ttlSeconds' | 'recentPerCamera' | 'recentTtlSeconds'>

/** {@link ResultCache} inside this process. Nothing outlives it. */
export class MemoryCache implements ResultCache {
  readonly #latest: LRUCache<string, KeptText>
  readonly #recent: LRUCache<string, RecentWindow>
  #state: CacheHealth['state'] = 'connecting'

  constructor(
    readonly limits: CacheLimits,
    readonly metrics: Pick<ServiceMetrics, 'cacheOperations'>,
  ) {
    this.#latest = new LRUCache({ max: maxCameras, ttl: limits.ttlSeconds * 1000, ...clock })
    this.#recent = new LRUCache({ max: maxCameras, ttl: limits.recentTtlSeconds * 1000, ...clock })
  }

  get health(): CacheHealth {
    return { backend: 'memory', state: this.#state, reason: 'results are kept in this process' }
  }

  start(): void {
    this.#state = 'up'
  }

  put(result: DetectionsText): void {
    if (this.#state === 'stopped') return
    const { cameraId, json } = result
    const latest = this.#latest.get(cameraId) ?? new KeptText()
    latest.write(json)
    this.#latest.set(cameraId, latest)
    const window = this.#recent.get(cameraId) ?? new RecentWindow(this.limits.recentPerCamera)
    window.add(orderKey(result), json)
    this.#recent.set(cameraId, window)
    this.#count('put')
  }

  async latest(cameraId: string): Promise<DetectionsMessage | undefined> {
    this.#count('latest')
    const json = this.#latest.get(cameraId)
    return json && parseDetectionsJson(json.toString())
  }

  async recent(query: RecentQuery): Promise<RecentPage> {
    const range = recentRange(query, wallMs() - this.limits.recentTtlSeconds * 1000)
    this.#count('recent')
    const contains = query.label === undefined ? '' : labelInJson(query.label)
    const found: RecentEntry[] = []
    for (const entry of mergeNewestFirst(this.#windows(query.cameraId), range)) {
      if (!entry.json.includes(contains)) continue
      found.push(entry)
      if (found.length > query.limit) break
    }
    const items = found.slice(0, query.limit)
    const last = items.at(-1)
    const page = { items: items.map(({ json }) => parseDetectionsJson(json.toString())) }
    return found.length > items.length && last !== undefined
      ? { ...page, nextCursor: cursorOf(last.key) }
      : page
  }

  async forget(cameraId: string): Promise<void> {
    this.#latest.delete(cameraId)
    this.#recent.delete(cameraId)
    this.#count('forget')
  }

  async stop(): Promise<void> {
    this.#state = 'stopped'
    this.#latest.clear()
    this.#recent.clear()
  }

  #windows(cameraId: string | undefined): readonly RecentWindow[] {
    if (cameraId === undefined) return [...this.#recent.values()]
    const window = this.#recent.get(cameraId)
    return window === undefined ? [] : [window]
  }

  #count(operation: string): void {
    this.metrics.cacheOperations.inc({ operation, result: 'ok' })
  }
}

/** Entries of all windows in one order, newest first. */
function* mergeNewestFirst(windows: readonly RecentWindow[], range: RecentRange): Generator<RecentEntry> {
  const heads = windows.flatMap((window) => {
    const entries = window.newestFirst(range)
    const first = entries.next()
    return first.done === true ? [] : [{ entries, entry: first.value }]
  })
  while (heads.length > 0) {
    const newest = heads.reduce((best, head) => (head.entry.key > best.entry.key ? head : best))
    yield newest.entry
    const next = newest.entries.next()
    if (next.done === true) heads.splice(heads.indexOf(newest), 1)
    else newest.entry = next.value
  }
}
