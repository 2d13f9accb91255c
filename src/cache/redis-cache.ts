import type { CacheConfig } from '../config/outputs.js'
import { labelInJson, parseDetectionsJson, type DetectionsText } from '../messages/detections-json.js'
import type { DetectionsMessage } from '../messages/detections-message.js'
import { backoffMs } from '../lifecycle/backoff.js'
import { nowMs, wallMs } from '../lifecycle/clock.js'
import { delay } from '../lifecycle/delay.js'
import type { Log } from '../lifecycle/log.js'
import type { ServiceMetrics } from '../metrics/service-metrics.js'
import { CacheUnavailableError } from './errors.js'
import { cursorOf, orderKey, paddedTime } from './order-key.js'
import { recentRange } from './recent-range.js'
import { FailureStreak, redisFailure } from './redis/redis-failure.js'
import { RedisLink, type LinkSettings, type StoredResult } from './redis/redis-link.js'
import type { CacheHealth, RecentPage, RecentQuery, ResultCache } from './result-cache.js'

const backoff = { baseMs: 100, capMs: 700 }
const streakLimits = { maxFailures: 3, maxMs: 500 }
/** Puts under way at once; more are not cached. */
const maxPutsInFlight = 64
/** Keys looked at in one script, which holds Redis up, and scripts of one query. */
const lookPerScript = 500
const maxScripts = 10
const logEveryMs = 60_000

/**
 * {@link ResultCache} in Redis, for many processes to read.
 *
 * The connection is also the circuit breaker: failures in a row close it, and while there is none every operation fails at once.
 */
export class RedisCache implements ResultCache {
  readonly #link: LinkSettings
  readonly #abort = new AbortController()
  #current: { link: RedisLink; streak: FailureStreak } | undefined
  #state: CacheHealth['state'] = 'connecting'
  #reason = 'not started'
  #putsInFlight = 0
  #loggedMs = Number.NEGATIVE_INFINITY
  #loop: Promise<void> | undefined

  constructor(
    readonly config: CacheConfig & { redis: string },
    readonly metrics: Pick<ServiceMetrics, 'cacheOperations'>,
    readonly log: Log,
  ) {
    const { redis: url, keyPrefix, commandTimeoutMs } = config
    this.#link = { url, keyPrefix, commandTimeoutMs }
  }

  get health(): CacheHealth {
    return { backend: 'redis', state: this.#state, reason: this.#reason }
  }

  start(): void {
    this.#reason = 'connecting'
    this.#loop ??= this.#run()
  }

  put(result: DetectionsText): void {
    if (this.#current === undefined || this.#putsInFlight >= maxPutsInFlight) {
      this.#count('put', 'skipped')
      return
    }
    this.#putsInFlight += 1
    void this.#do('put', (link) => link.put(this.#putOf(result)))
      .catch(() => undefined)
      .finally(() => (this.#putsInFlight -= 1))
  }

  async latest(cameraId: string): Promise<DetectionsMessage | undefined> {
    const json = await this.#do('latest', (link) => link.latest(cameraId))
    return json === null ? undefined : parseDetectionsJson(json)
  }

  async recent(query: RecentQuery): Promise<RecentPage> {
    const { atLeast, below } = recentRange(query, wallMs() - this.config.recentTtlSeconds * 1000)
    const contains = query.label === undefined ? '' : labelInJson(query.label)
    const found: StoredResult[] = []
    let end = below
    let more = true
    for (let scripts = 0; more && found.length <= query.limit && scripts < maxScripts; scripts += 1) {
      const most = query.limit + 1 - found.length
      const look = contains === '' ? Math.min(most, lookPerScript) : lookPerScript
      const page = { cameraId: query.cameraId, atLeast, below: end, look, most, contains }
      const { looked, last, results } = await this.#do('recent', (link) => link.page(page))
      found.push(...results)
      more = looked === look || results.length === most
      if (last !== '') end = last
    }
    return pageOf(found, query.limit, more ? end : undefined)
  }

  async forget(cameraId: string): Promise<void> {
    await this.#do('forget', (link) => link.forget(cameraId))
  }

  async stop(): Promise<void> {
    this.#abort.abort()
    this.#current?.link.close()
    this.#current = undefined
    await this.#loop
    this.#state = 'stopped'
    this.#reason = 'stopped'
  }

  async #run(): Promise<void> {
    for (let attempt = 0; !this.#abort.signal.aborted; attempt += 1) {
      const served = await this.#serve()
      if (this.#abort.signal.aborted) return
      if (served) attempt = 0
      await delay(backoffMs(attempt, backoff), this.#abort.signal)
    }
  }

  /** Opens a connection and waits for its end. @returns whether it could be opened. */
  async #serve(): Promise<boolean> {
    try {
      const link = await RedisLink.open(this.#link)
      if (this.#abort.signal.aborted) {
        link.close()
        return true
      }
      this.#current = { link, streak: new FailureStreak(streakLimits) }
      this.#up()
      await link.ended
      this.#current = undefined
      if (this.#state === 'up') this.#down('connection lost')
      return true
    } catch (error) {
      this.#down(redisFailure(error).reason)
      return false
    }
  }

  /** @throws CacheUnavailableError */
  async #do<T>(operation: string, work: (link: RedisLink) => Promise<T>): Promise<T> {
    const current = this.#current
    if (current === undefined) {
      this.#count(operation, 'skipped')
      throw new CacheUnavailableError(this.#reason)
    }
    try {
      const result = await work(current.link)
      current.streak.succeeded()
      this.#succeeded(operation)
      return result
    } catch (error) {
      this.#count(operation, 'failed')
      const { kind, reason } = redisFailure(error)
      if (kind === 'refused') this.#refused(operation, reason)
      else if (kind === 'unusable' || current.streak.failed(nowMs())) this.#break(current.link, reason)
      throw new CacheUnavailableError(reason, error)
    }
  }

  /** Opens the breaker: this connection serves nobody any more. */
  #break(link: RedisLink, reason: string): void {
    if (this.#current?.link !== link) return
    this.#current = undefined
    this.#down(reason)
    link.close()
  }

  #putOf(result: DetectionsText): Parameters<RedisLink['put']>[0] {
    const recentTtlMs = this.config.recentTtlSeconds * 1000
    return {
      cameraId: result.cameraId,
      json: result.json,
      key: orderKey(result),
      ttlMs: this.config.ttlSeconds * 1000,
      capacity: this.config.recentPerCamera,
      expired: paddedTime(wallMs() - recentTtlMs),
      recentTtlMs,
    }
  }

  #succeeded(operation: string): void {
    this.#count(operation, 'ok')
    if (operation === 'put') this.#reason = 'connected'
  }

  #refused(operation: string, reason: string): void {
    this.#reason = `redis refuses ${operation}: ${reason}`
    this.#logSometimes(`redis refuses a command`, { operation, reason })
  }

  #up(): void {
    this.#state = 'up'
    this.#reason = 'connected'
    this.#loggedMs = Number.NEGATIVE_INFINITY
    this.log.info({ cache: 'redis' }, 'result cache up')
  }

  #down(reason: string): void {
    // A connection that we end ourselves is not lost.
    if (this.#abort.signal.aborted) return
    this.#state = 'down'
    this.#reason = reason
    this.#logSometimes('result cache down, retrying', { reason })
  }

  #logSometimes(message: string, fields: Readonly<Record<string, string>>): void {
    const atMs = nowMs()
    if (atMs - this.#loggedMs < logEveryMs) return
    this.#loggedMs = atMs
    this.log.warn({ cache: 'redis', ...fields }, message)
  }

  #count(operation: string, result: 'ok' | 'failed' | 'skipped'): void {
    this.metrics.cacheOperations.inc({ operation, result })
  }
}

/** @param next - last key looked at, when there may be more behind it. */
function pageOf(found: readonly StoredResult[], limit: number, next: string | undefined): RecentPage {
  const items = found.slice(0, limit)
  const page = { items: items.map(({ json }) => parseDetectionsJson(json)) }
  const last = items.at(-1)
  if (found.length > limit && last !== undefined) return { ...page, nextCursor: cursorOf(last.key) }
  return next === undefined ? page : { ...page, nextCursor: cursorOf(next) }
}
