import { Redis } from 'ioredis'
import { redactText } from '../../config/redact.js'
import { nowMs } from '../../lifecycle/clock.js'
import type { Log } from '../../lifecycle/log.js'
import type { Tensor } from '../../tensors/tensor.js'
import type { ResponseCache } from './response-cache.js'
import { decodeTensors, encodeTensors } from './tensor-record.js'

export type RedisResponseCacheSettings = Readonly<{
  url: string
  ttlSeconds: number
  commandTimeoutMs?: number
}>

const defaultCommandTimeoutMs = 50
/** After a failure nothing is asked for so long. */
const restMs = 1_000
const complainEveryMs = 60_000
const maxRetryMs = 5_000
const keyPrefix = 'gantry:response:'

/** Answers in Redis, for all services that share it. While Redis fails there is no cache. */
export class RedisResponseCache implements ResponseCache {
  readonly #redis: Redis
  #restUntilMs = 0
  #complainedMs = -Infinity

  constructor(
    readonly settings: RedisResponseCacheSettings,
    readonly log: Log,
  ) {
    const timeoutMs = settings.commandTimeoutMs ?? defaultCommandTimeoutMs
    this.#redis = new Redis(settings.url, {
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      commandTimeout: timeoutMs,
      connectTimeout: 1_000,
      retryStrategy: (attempt) => Math.min(maxRetryMs, 100 * 2 ** Math.min(attempt, 10)),
    })
    this.#redis.on('error', (error: Error) => this.#complain(error))
  }

  async get(key: string): Promise<readonly Tensor[] | undefined> {
    const record = await this.#tried(() => this.#redis.getBuffer(keyPrefix + key))
    return record ? decoded(record) : undefined
  }

  async put(key: string, outputs: readonly Tensor[]): Promise<void> {
    await this.#tried(async () =>
      this.#redis.set(keyPrefix + key, await encodeTensors(outputs), 'EX', this.settings.ttlSeconds),
    )
  }

  close(): Promise<void> {
    this.#redis.disconnect()
    return Promise.resolve()
  }

  async #tried<T>(command: () => Promise<T>): Promise<T | undefined> {
    if (this.#redis.status !== 'ready' || nowMs() < this.#restUntilMs) return undefined
    try {
      return await command()
    } catch (error) {
      this.#restUntilMs = nowMs() + restMs
      this.#complain(error)
      return undefined
    }
  }

  #complain(error: unknown): void {
    if (nowMs() - this.#complainedMs < complainEveryMs) return
    this.#complainedMs = nowMs()
    const reason = redactText(error instanceof Error ? error.message : String(error))
    this.log.warn({ reason }, 'response cache in Redis fails, requests run without it')
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
