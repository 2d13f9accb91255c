import { redactText } from '../../config/redact.js'
import type { RedisConfig } from '../../config/redis.js'
import { nowMs } from '../../lifecycle/clock.js'
import { delay } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import { redisAdvice } from '../../lifecycle/redis-advice.js'
import { type RedisClient, RedisConnections } from '../../lifecycle/redis-client.js'
import type { Tensor } from '../../tensors/tensor.js'
import type { ResponseCache } from './response-cache.js'
import { decodeTensors, encodeTensors } from './tensor-record.js'

export type RedisResponseCacheSettings = Readonly<{
  redis: RedisConfig
  ttlSeconds: number
  commandTimeoutMs?: number
}>

const defaultCommandTimeoutMs = 50
const connectTimeoutMs = 1_000
/** After a failure nothing is asked for so long. */
const restMs = 1_000
const complainEveryMs = 60_000
const maxRetryMs = 5_000
const setting = 'models.cache.redis'
/** With the version of what is kept there: another one is never read. */
const keyPrefix = 'gantry:response:v1:'

/** Answers in Redis, for all services that share it. While Redis fails there is no cache. */
export class RedisResponseCache implements ResponseCache {
  readonly #connections: RedisConnections
  readonly #closed = new AbortController()
  #client: RedisClient | undefined
  #restUntilMs = 0
  #complainedMs = -Infinity

  constructor(
    readonly settings: RedisResponseCacheSettings,
    readonly log: Log,
  ) {
    this.#connections = new RedisConnections(settings.redis, setting, log)
    void this.#stayConnected()
  }

  async get(key: string): Promise<readonly Tensor[] | undefined> {
    const record = await this.#tried((client) => client.getBuffer(keyPrefix + key))
    return record ? decoded(record) : undefined
  }

  async put(key: string, outputs: readonly Tensor[]): Promise<void> {
    await this.#tried(async (client) =>
      client.set(keyPrefix + key, await encodeTensors(outputs), 'EX', this.settings.ttlSeconds),
    )
  }

  close(): Promise<void> {
    this.#closed.abort()
    this.#client?.disconnect()
    return Promise.resolve()
  }

  /** Each connection is a new client, so that certificates which have changed are used. */
  async #stayConnected(): Promise<void> {
    const { signal } = this.#closed
    for (let attempt = 1; !signal.aborted; attempt += 1) {
      if (await this.#connection()) attempt = 1
      await delay(Math.min(maxRetryMs, 100 * 2 ** Math.min(attempt, 10)), signal)
    }
  }

  /** @returns whether there was one, once it is over. */
  async #connection(): Promise<boolean> {
    const commandTimeoutMs = this.settings.commandTimeoutMs ?? defaultCommandTimeoutMs
    let failure: unknown
    try {
      const client = await this.#connections.create({ connectTimeoutMs, commandTimeoutMs })
      client.on('error', (error: Error) => (failure ??= error))
      const ended = new Promise<void>((resolve) => client.once('end', () => resolve()))
      if (this.#closed.signal.aborted) return true
      this.#client = client
      await client.connect()
      await ended
      return true
    } catch (error) {
      this.#client?.disconnect()
      this.#complain(error, failure)
      return false
    } finally {
      this.#client = undefined
    }
  }

  async #tried<T>(command: (client: RedisClient) => Promise<T>): Promise<T | undefined> {
    const client = this.#client
    if (client?.status !== 'ready' || nowMs() < this.#restUntilMs) return undefined
    try {
      return await command(client)
    } catch (error) {
      this.#restUntilMs = nowMs() + restMs
      this.#complain(error, undefined)
      return undefined
    }
  }

  #complain(error: unknown, ofConnection: unknown): void {
    if (this.#closed.signal.aborted || nowMs() - this.#complainedMs < complainEveryMs) return
    this.#complainedMs = nowMs()
    const advice = redisAdvice(error, ofConnection, setting)
    const reason = redactText(advice.reason)
    this.log.warn({ reason, fix: advice.fix }, 'response cache in Redis fails, requests run without it')
  }
}

/** What somebody else wrote under the key is no answer. */
function decoded(record: Buffer): readonly Tensor[] | undefined {
  try {
    return decodeTensors(record)
  } catch {
    return undefined
  }
}
