import { MemoryCache } from '../../src/cache/memory-cache.js'
import { createServiceMetrics } from '../../src/metrics/service-metrics.js'
import { describeResultCache } from './cache-contract.js'

describeResultCache('MemoryCache', async (limits) => {
  const cache = new MemoryCache(limits, createServiceMetrics())
  cache.start()
  return { cache, end: () => cache.stop() }
})
