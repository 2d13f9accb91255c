import type { CacheConfig } from '../config/outputs.js'
import type { RedisConfig } from '../config/redis.js'
import { labelInJson, readDetectionsJson, type DetectionsText } from '../messages/detections-json.js'
import type { DetectionsMessage } from '../messages/detections-message.js'
import { backoffMs } from '../lifecycle/backoff.js'
import { nowMs, wallMs } from '../lifecycle/clock.js'
import { atMost, delay } from '../lifecycle/delay.js'
import type { Log } from '../lifecycle/log.js'
import { RedisConnections } from '../lifecycle/redis-client.js'
import type { ServiceMetrics } from '../metrics/service-metrics.js'
import { CacheUnavailableError } from './errors.js'
import { cursorOf, orderKey, paddedTime } from './order-key.js'
import { recentRange } from './recent-range.js'
import { FailureStreak, redisFailure } from './redis/redis-failure.js'
import { RedisLink, type LinkSettings } from './redis/redis-link.js'
import type { Foreign, StoredPut, StoredResult } from './redis/result-store.js'
import type { CacheHealth, RecentPage, RecentQuery, ResultCache } from './result-cache.js'

const backoff = { baseMs: 100, capMs: 700 }
const streakLimits = { maxFailures: 3, maxMs: 500 }
/** Puts under way at once; more are not cached. */
const maxPutsInFlight = 64
/** Keys looked at in one script, which holds Redis up, and scripts of one query. */
const lookPerScript = 500
const maxScripts = 10
const logEveryMs = 60_000
const maxReasons = 5
/** Where writes are refused, from one try to the next. */
const tryWritesEveryMs = 1_000
const setting = 'cache.redis'

/**
 * {@link ResultCache} in Redis, for many processes to read.
 *
 * The connection is also the circuit breaker: failures in a row close it, and while there is none every operation fails at once. It is up
 * once a result could be written, read and deleted; while writes alone are refused it is down and answers reads. What somebody else keeps
 * under its keys is passed over and counted.
 */
export class RedisCache implements ResultCache {
  readonly #link: LinkSettings
  readonly #abort = new AbortController()
  #current: { link: RedisLink; streak: FailureStreak } | undefined
  #state: CacheHealth['state'] = 'connecting'
  #reason = 'not started'
  #putsInFlight = 0
  #loggedMs = Number.NEGATIVE_INFINITY
  #upsSinceMs = Number.NEGATIVE_INFINITY
  #ups = 0
  readonly #toldReasons = new Set<string>()
  #toldForeignMs = Number.NEGATIVE_INFINITY
  #loop: Promise<void> | undefined

  constructor(
    readonly config: Omit<CacheConfig, 'redis'> & Readonly<{ redis: RedisConfig }>,
    readonly metrics: Pick<ServiceMetrics, 'cacheOperations' | 'cacheForeign'>,
    readonly log: Log,
  ) {
    const { redis, keyPrefix, commandTimeoutMs } = config
    const connections = new RedisConnections(redis, setting, log)
    this.#link = { connections, setting, keyPrefix, commandTimeoutMs }
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
    void this.#do('put', ({ store }) => store.put(this.#putOf(result)))
      .then((foreign) => this.#pass('put', foreign))
      .catch(() => undefined)
      .finally(() => (this.#putsInFlight -= 1))
  }

  async latest(cameraId: string): Promise<DetectionsMessage | undefined> {
    const { json, foreign } = await this.#do('latest', ({ store }) => store.latest(cameraId))
    this.#pass('latest', foreign)
    return json === undefined ? undefined : this.#read('latest', json, cameraId)
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
      const { looked, last, results, foreign } = await this.#do('recent', ({ store }) => store.page(page))
      this.#pass('recent', foreign)
      found.push(...results)
      more = looked === look || results.length === most
      if (last !== '') end = last
    }
    return this.#pageOf(found, query.limit, more ? end : undefined)
  }

  async forget(cameraId: string): Promise<void> {
    this.#pass('forget', await this.#do('forget', ({ store }) => store.forget(cameraId)))
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
      return await this.#use(link)
    } catch (error) {
      this.#down(redisFailure(error, setting).reason)
      return false
    }
  }

  /** Waits for the end of a connection. @returns whether it was of use. */
  async #use(link: RedisLink): Promise<boolean> {
    this.#current = { link, streak: new FailureStreak(streakLimits) }
    try {
      await this.#tryWrites(link)
      while (!(await this.#isOver(link))) if (this.#state !== 'up') await this.#tryWrites(link)
      if (this.#state === 'up') this.#down('connection lost')
      return true
    } catch (error) {
      this.#down(redisFailure(error, setting).reason)
      return false
    } finally {
      this.#current = undefined
      link.close()
    }
  }

  /** @returns whether a connection is over, after a while at the latest. */
  async #isOver(link: RedisLink): Promise<boolean> {
    const ended = link.ended.then(() => true)
    const isOver = await atMost(tryWritesEveryMs, ended)
    return isOver === true || this.#current?.link !== link
  }

  /** @throws where the connection is of no use for anything */
  async #tryWrites(link: RedisLink): Promise<void> {
    try {
      await link.probe()
      if (this.#current?.link === link) this.#up()
    } catch (error) {
      const { kind, reason } = redisFailure(error, setting)
      if (kind !== 'refused') throw error
      this.#takesNoWrites(reason)
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
      const { kind, reason } = redisFailure(error, setting)
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

  #putOf(result: DetectionsText): StoredPut {
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
    if (operation === 'put' && this.#state !== 'up') this.#up()
  }

  #refused(operation: string, reason: string): void {
    if (operation === 'put') this.#takesNoWrites(reason)
    else this.#logSometimes('redis refuses a command', { operation, reason })
  }

  /** It may still be read. */
  #takesNoWrites(reason: string): void {
    if (this.#abort.signal.aborted) return
    this.#state = 'down'
    this.#reason = `redis takes no writes: ${reason}`
    this.#logSometimes('redis takes no writes, results are not kept', { reason })
  }

  /** What is not ours is passed over. */
  #pass(operation: string, foreign: Foreign): void {
    if (foreign.length === 0) return
    this.metrics.cacheForeign.inc({ operation }, foreign.length)
    const atMs = nowMs()
    if (atMs - this.#toldForeignMs < logEveryMs) return
    this.#toldForeignMs = atMs
    const fix = 'give Gantry a cache.keyPrefix of its own'
    this.log.warn({ cache: 'redis', key: foreign[0], fix }, 'keys of somebody else are ignored')
  }

  #read(operation: string, json: string, key: string): DetectionsMessage | undefined {
    const message = readDetectionsJson(json)
    if (message === undefined) this.#pass(operation, [key])
    return message
  }

  /** @param next - last key looked at, when there may be more behind it. */
  #pageOf(found: readonly StoredResult[], limit: number, next: string | undefined): RecentPage {
    const shown = found.slice(0, limit)
    const items = shown.flatMap(({ json, key }) => this.#read('recent', json, key) ?? [])
    const last = shown.at(-1)
    if (found.length > limit && last !== undefined) return { items, nextCursor: cursorOf(last.key) }
    return next === undefined ? { items } : { items, nextCursor: cursorOf(next) }
  }

  #up(): void {
    this.#state = 'up'
    this.#reason = 'connected'
    const atMs = nowMs()
    if (atMs - this.#upsSinceMs >= logEveryMs) {
      this.#upsSinceMs = atMs
      this.#ups = 0
    }
    this.#ups += 1
    // One that comes and goes is told of a few times.
    if (this.#ups > maxReasons) return
    this.#toldReasons.clear()
    this.log.info({ cache: 'redis' }, 'result cache up')
  }

  #down(reason: string): void {
    // A connection that we end ourselves is not lost.
    if (this.#abort.signal.aborted) return
    this.#state = 'down'
    this.#reason = reason
    this.#logSometimes('result cache down, retrying', { reason })
  }

  /** Each reason once in a while; and few of them, were there many. */
  #logSometimes(message: string, fields: Readonly<Record<string, string>>): void {
    const atMs = nowMs()
    if (atMs - this.#loggedMs >= logEveryMs) this.#toldReasons.clear()
    const reason = fields['reason'] ?? ''
    if (this.#toldReasons.has(reason) || this.#toldReasons.size >= maxReasons) return
    if (this.#toldReasons.size === 0) this.#loggedMs = atMs
    this.#toldReasons.add(reason)
    this.log.warn({ cache: 'redis', ...fields }, message)
  }

  #count(operation: string, result: 'ok' | 'failed' | 'skipped'): void {
    this.metrics.cacheOperations.inc({ operation, result })
  }
}
