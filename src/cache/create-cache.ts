import type { CacheConfig } from '../config/outputs.js'
import type { Log } from '../lifecycle/log.js'
import type { ServiceMetrics } from '../metrics/service-metrics.js'
import { MemoryCache } from './memory-cache.js'
import { RedisCache } from './redis-cache.js'
import type { ResultCache } from './result-cache.js'

/** Redis when one is configured, otherwise this process's memory. Does not start it. */
export function createResultCache(
  config: CacheConfig,
  metrics: Pick<ServiceMetrics, 'cacheOperations' | 'cacheForeign'>,
  log: Log,
): ResultCache {
  const { redis } = config
  return redis === undefined
    ? new MemoryCache(config, metrics)
    : new RedisCache({ ...config, redis }, metrics, log)
}
