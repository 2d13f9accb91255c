import type { ModelsConfig } from '../../config/models.js'
import type { Log } from '../../lifecycle/log.js'
import { MemoryResponseCache } from './memory-response-cache.js'
import { RedisResponseCache } from './redis-response-cache.js'
import type { ResponseCache } from './response-cache.js'

/** Whether anything is kept. */
export function keepsAnswers({ redis, sizeBytes }: ModelsConfig['cache']): boolean {
  return redis !== undefined || sizeBytes > 0
}

/** In Redis where one is given, else in memory; `undefined` where nothing is kept. */
export function createResponseCache(
  { redis, sizeBytes, ttlSeconds }: ModelsConfig['cache'],
  log: Log,
): ResponseCache | undefined {
  if (redis !== undefined) return new RedisResponseCache({ redis, ttlSeconds }, log)
  return sizeBytes > 0 ? new MemoryResponseCache(sizeBytes) : undefined
}
