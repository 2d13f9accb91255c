import type { Redis } from 'ioredis'
import { z } from 'zod'
import { atMost } from '../../lifecycle/delay.js'
import type { OrderKey } from '../order-key.js'
import { forgetScript, pageScript, putScript } from './scripts.js'

/** Longest that connecting, logging in and loading the scripts may take. */
const openDeadlineMs = 800

export type LinkSettings = Readonly<{ url: string; keyPrefix: string; commandTimeoutMs: number }>

/** A stored result. */
export type StoredResult = Readonly<{ key: OrderKey; json: string }>

/** Results of one look at the index; `last` is the oldest key looked at, whether or not it was a result. */
export type StoredPage = Readonly<{ looked: number; last: OrderKey; results: readonly StoredResult[] }>

/** One connection to Redis, with the scripts loaded. It is never mended: after a failure it is closed and a new one opened. */
export class RedisLink {
  /** Resolves when the connection is over, whoever ended it. */
  readonly ended: Promise<void>
  #shas = { put: '', page: '', forget: '' }

  private constructor(
    readonly redis: Redis,
    readonly settings: LinkSettings,
  ) {
    redis.on('error', () => undefined)
    this.ended = new Promise((resolve) => redis.once('end', () => resolve()))
  }

  /** @throws when Redis does not serve within {@link openDeadlineMs}. */
  static async open(settings: LinkSettings): Promise<RedisLink> {
    // Loaded where there is a Redis alone.
    const { Redis } = await import('ioredis')
    const redis = new Redis(settings.url, {
      lazyConnect: true,
      enableOfflineQueue: false,
      enableReadyCheck: false,
      disableClientInfo: true,
      retryStrategy: null,
      maxRetriesPerRequest: 1,
      connectTimeout: openDeadlineMs,
      commandTimeout: settings.commandTimeoutMs,
    })
    let failure: Error | undefined
    redis.on('error', (error: Error) => (failure = error))
    const link = new RedisLink(redis, settings)
    try {
      const ready = await atMost(openDeadlineMs, link.#prepare())
      if (ready === undefined) throw new Error(`no answer within ${openDeadlineMs} ms`)
      return link
    } catch (error) {
      link.close()
      // "Connection is closed." says less than the error of the socket before it.
      throw failure ?? error
    }
  }

  async put(put: {
    cameraId: string
    json: Buffer
    key: OrderKey
    ttlMs: number
    capacity: number
    expired: OrderKey
    recentTtlMs: number
  }): Promise<void> {
    const { cameraId, json, key, ttlMs, capacity, expired, recentTtlMs } = put
    const args = [json, key, ttlMs, capacity, expired, recentTtlMs]
    await this.redis.evalsha(this.#shas.put, 4, ...this.#keysOf(cameraId), ...args)
  }

  async latest(cameraId: string): Promise<string | null> {
    return this.redis.get(this.#keysOf(cameraId)[0])
  }

  /** @param contains - text that a result must contain. */
  async page(page: {
    cameraId: string | undefined
    atLeast: OrderKey
    below: OrderKey
    look: number
    most: number
    contains: string
  }): Promise<StoredPage> {
    const { keyPrefix } = this.settings
    const index = page.cameraId === undefined ? `${keyPrefix}v1:index` : this.#keysOf(page.cameraId)[1]
    const args = [page.atLeast, page.below, page.look, page.most, page.contains, `${keyPrefix}v1:results:`]
    const reply = await this.redis.evalsha(this.#shas.page, 1, index, ...args)
    return parsePage(reply)
  }

  async forget(cameraId: string): Promise<void> {
    await this.redis.evalsha(this.#shas.forget, 4, ...this.#keysOf(cameraId))
  }

  /** At once: what is under way fails. */
  close(): void {
    this.redis.disconnect()
  }

  async #prepare(): Promise<true> {
    await this.redis.connect()
    await this.redis.ping()
    const load = async (script: string) => String(await this.redis.script('LOAD', script))
    const [put, page, forget] = await Promise.all([putScript, pageScript, forgetScript].map(load))
    this.#shas = { put: put ?? '', page: page ?? '', forget: forget ?? '' }
    return true
  }

  #keysOf(cameraId: string): [latest: string, index: string, results: string, all: string] {
    const base = `${this.settings.keyPrefix}v1:`
    return [
      `${base}latest:${cameraId}`,
      `${base}index:${cameraId}`,
      `${base}results:${cameraId}`,
      `${base}index`,
    ]
  }
}

const pageReply = z.tuple([z.number(), z.string()]).rest(z.string())

function parsePage(reply: unknown): StoredPage {
  const [looked, last, ...flat] = pageReply.parse(reply)
  const results: StoredResult[] = []
  for (let i = 0; i + 1 < flat.length; i += 2) results.push({ key: flat[i] ?? '', json: flat[i + 1] ?? '' })
  return { looked, last, results }
}
