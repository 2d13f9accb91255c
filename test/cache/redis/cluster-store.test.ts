import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { RedisCache } from '../../../src/cache/redis-cache.js'
import { checkRedis } from '../../../src/cli/checks/redis-check.js'
import { modelsSchema } from '../../../src/config/models.js'
import { cacheSchema } from '../../../src/config/outputs.js'
import type { RedisConfig } from '../../../src/config/redis.js'
import { createServiceMetrics } from '../../../src/metrics/service-metrics.js'
import { detectionsText } from '../../support/detections.js'
import { cacheUp, redisCluster } from '../../support/redis-groups.js'
import { redisMissing } from '../../support/redis.js'
import { silentLog } from '../../support/silent-log.js'
import { until } from '../../support/until.js'
import { allPages, type ContractLimits, describeResultCache } from '../cache-contract.js'

/** Not started. The machine may be busy, and time limits are not the subject here. */
function cacheOf(redis: RedisConfig, limits: Partial<ContractLimits> = {}): RedisCache {
  const config = { ...cacheSchema.parse({}), redis, ...limits, commandTimeoutMs: 5_000 }
  return new RedisCache(config, createServiceMetrics(), silentLog())
}

describe.skipIf(redisMissing() !== undefined)('RedisCache and a cluster of three', () => {
  let cluster: Awaited<ReturnType<typeof redisCluster>>
  beforeAll(async () => {
    cluster = await redisCluster()
  }, 120_000)
  afterAll(() => cluster.stop())
  beforeEach(async () => {
    for (const node of cluster.nodes) {
      const client = node.client()
      await client.flushall()
      client.disconnect()
    }
  })

  describeResultCache('contract', async (limits) => {
    const cache = cacheOf({ nodes: cluster.addresses }, limits)
    cache.start()
    await cacheUp(cache)
    return { cache, end: () => cache.stop() }
  })

  it(
    'R79: keeps what is of a camera on one node, and cameras on all of them',
    { timeout: 60_000 },
    async () => {
      const cache = cacheOf({ nodes: cluster.addresses.slice(0, 1) })
      onTestFinished(() => cache.stop())
      cache.start()
      await cacheUp(cache)
      const cameras = Array.from({ length: 12 }, (_, index) => `dock-${index}`)
      for (const cameraId of cameras) {
        cache.put(detectionsText({ cameraId }))
        await until('kept', () => cache.latest(cameraId))
      }
      const keys = await cluster.keys()
      for (const camera of cameras) {
        const nodes = keys.filter(({ key }) => key.includes(`{${camera}}`)).map(({ node }) => node)
        expect(nodes).toHaveLength(3)
        expect(new Set(nodes).size).toBe(1)
      }
      expect(new Set(keys.map(({ node }) => node)).size).toBe(3)
      const pages = await allPages(cache, { limit: 5 })
      expect(pages.flatMap(({ items }) => items.map(({ cameraId }) => cameraId)).sort()).toEqual(
        [...cameras].sort(),
      )
    },
  )

  it('R79: is told of by check, and is no server for a URL', { timeout: 60_000 }, async () => {
    const checked = (redis: RedisConfig) =>
      checkRedis({ cache: cacheSchema.parse({ redis }), models: modelsSchema.parse({}) }, true)
    expect(await checked({ nodes: cluster.addresses })).toMatchObject([{ state: 'ok' }])
    const url = `redis://${cluster.addresses[0] ?? ''}`
    expect((await checked(url))[0]?.fix).toContain('cache.redis.nodes')
    const rules = ['~gantry:*', '+@read', '+@write', '+@scripting', '+@connection', '+cluster|slots']
    for (const node of cluster.nodes) {
      const client = node.client()
      await client.call('ACL', 'SETUSER', 'gantry', 'on', '>secret', ...rules)
      client.disconnect()
    }
    const login = { username: 'gantry', password: 'secret' }
    expect(await checked({ nodes: cluster.addresses, ...login })).toMatchObject([{ state: 'ok' }])
    const alone = cacheOf(url)
    onTestFinished(() => alone.stop())
    alone.start()
    await until('down', () => alone.health.state === 'down')
    expect(alone.health.reason).toMatch(/node of a cluster .*cache\.redis\.nodes/)
  })

  it('R77: passes over other types under its names', async () => {
    const cache = cacheOf({ nodes: cluster.addresses })
    onTestFinished(() => cache.stop())
    cache.start()
    await cacheUp(cache)
    cache.put(detectionsText({ cameraId: 'dock-1' }))
    await until('kept', () => cache.latest('dock-1'))
    const keys = await cluster.keys()
    const put = async (
      name: string,
      change: (client: ReturnType<(typeof cluster.nodes)[0]['client']>) => Promise<unknown>,
    ) => {
      const client = cluster.nodes[keys.find(({ key }) => key === name)?.node ?? 0]?.client()
      onTestFinished(() => client?.disconnect())
      if (client) await change(client)
    }
    await put('gantry:v1:index', (client) => client.zadd('gantry:v1:index', '0', 'hello', '0', '999:::'))
    await put('gantry:v1:results:{dock-1}', (client) => client.set('gantry:v1:results:{dock-1}', 'a text'))
    expect((await cache.recent({ limit: 5 })).items).toEqual([])
    expect((await cache.recent({ limit: 5, cameraId: 'dock-1' })).items).toEqual([])
    expect((await cache.latest('dock-1'))?.cameraId).toBe('dock-1')
    expect(cache.health.state).toBe('up')
  })
})
