import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { RedisCache } from '../../src/cache/redis-cache.js'
import { detectionsMessageSchema } from '../../src/messages/detections-message.js'
import { cacheSchema, type CacheConfig } from '../../src/config/outputs.js'
import { createServiceMetrics } from '../../src/metrics/service-metrics.js'
import { detectionsText } from '../support/detections.js'
import { redisMissing, RedisServer } from '../support/redis.js'
import { recordingLog, silentLog } from '../support/silent-log.js'
import { TcpProxy } from '../support/tcp-proxy.js'
import { until } from '../support/until.js'
import { describeResultCache } from './cache-contract.js'

const missing = redisMissing()

function redisCache(redis: string, overrides: Partial<CacheConfig> = {}) {
  const metrics = createServiceMetrics()
  const { log, lines } = recordingLog()
  const config = { ...cacheSchema.parse({ redis }), ...overrides, redis }
  const cache = new RedisCache(config, metrics, log)
  return {
    cache,
    lines,
    counted: async (operation: string, result: string): Promise<number> => {
      const { values } = await metrics.cacheOperations.get()
      const of = values.find(({ labels }) => labels.operation === operation && labels.result === result)
      return of?.value ?? 0
    },
  }
}

const isUp = (cache: RedisCache) => until('cache up', () => cache.health.state === 'up')

/** How long a call takes to fail, and with what. */
async function failure(call: () => Promise<unknown>): Promise<{ ms: number; code: unknown }> {
  const startMs = performance.now()
  const code = await call().then(
    () => 'no failure',
    (error: unknown) => (error instanceof Error && 'code' in error ? error.code : error),
  )
  return { ms: performance.now() - startMs, code }
}

describe.skipIf(missing !== undefined)('RedisCache', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await RedisServer.start()
  })
  afterAll(() => server.stop())

  describeResultCache('contract', async (limits) => {
    const client = server.client()
    await client.flushall()
    client.disconnect()
    const config = { ...cacheSchema.parse({ redis: server.url }), redis: server.url, ...limits }
    // Not the subject here, and the machine may be busy.
    const cache = new RedisCache({ ...config, commandTimeoutMs: 5_000 }, createServiceMetrics(), silentLog())
    cache.start()
    await isUp(cache)
    return { cache, end: () => cache.stop() }
  })

  it('stops without a warning', async () => {
    const { cache, lines } = redisCache(server.url, { commandTimeoutMs: 5_000 })
    cache.start()
    await isUp(cache)
    await cache.stop()
    expect(lines.filter(({ level }) => Number(level) >= 40)).toEqual([])
    expect(cache.health).toMatchObject({ state: 'stopped' })
  })

  it('sets a life on every key', async () => {
    const { cache } = redisCache(server.url, { keyPrefix: 'life:', commandTimeoutMs: 5_000 })
    cache.start()
    await isUp(cache)
    cache.put(detectionsText())
    await until('stored', () => cache.latest('dock-1'))
    const client = server.client()
    const keys = await client.keys('life:*')
    expect(keys.sort()).toEqual(
      ['index', 'index:dock-1', 'latest:dock-1', 'results:dock-1'].map((key) => `life:v1:${key}`),
    )
    for (const key of keys) expect(await client.pttl(key)).toBeGreaterThan(0)
    client.disconnect()
    await cache.stop()
  })

  it('never shows a reader half a result while four writers are at work', async () => {
    const writers = [1, 2, 3, 4].map(
      () => redisCache(server.url, { recentPerCamera: 10, commandTimeoutMs: 5_000 }).cache,
    )
    const reader = redisCache(server.url, { recentPerCamera: 10, commandTimeoutMs: 5_000 }).cache
    for (const cache of [...writers, reader]) cache.start()
    await Promise.all([...writers, reader].map(isUp))
    let reads = 0
    for (let round = 0; round < 100; round += 1) {
      writers.forEach((cache, camera) =>
        cache.put(detectionsText({ cameraId: `torn-${camera}`, seq: round + 1 })),
      )
      const { items } = await reader.recent({ limit: 100 })
      for (const item of items) detectionsMessageSchema.parse(item)
      for (let camera = 0; camera < 4; camera += 1) {
        const cameraId = `torn-${camera}`
        const latest = await reader.latest(cameraId)
        if (latest === undefined) continue
        reads += 1
        // The window has the latest result too: both were written as one.
        const window = (await reader.recent({ limit: 10, cameraId })).items
        expect(window.length).toBeLessThanOrEqual(10)
        expect(window[0]?.seq ?? 0).toBeGreaterThanOrEqual(latest.seq)
      }
    }
    expect(reads).toBeGreaterThan(100)
    await Promise.all([...writers, reader].map((cache) => cache.stop()))
  })

  it('finds its scripts again after they were flushed', async () => {
    const { cache } = redisCache(server.url, { commandTimeoutMs: 5_000 })
    cache.start()
    await isUp(cache)
    const client = server.client()
    await client.script('FLUSH')
    client.disconnect()
    await until('stored', async () => {
      cache.put(detectionsText({ cameraId: 'flushed' }))
      return cache.latest('flushed')
    })
    await cache.stop()
  })
})

describe.skipIf(missing !== undefined)('RedisCache and a Redis in trouble', () => {
  let server: RedisServer
  beforeEach(async () => {
    server = await RedisServer.start()
  })
  afterEach(() => server.stop())

  it('R18: fails within 100 ms while Redis is frozen, opens the breaker within a second, and recovers by itself', async () => {
    const { cache, counted } = redisCache(server.url)
    cache.start()
    await isUp(cache)
    server.freeze()
    const frozenMs = performance.now()
    const failures: { ms: number; code: unknown }[] = []
    while (cache.health.state === 'up') {
      const startMs = performance.now()
      for (let seq = 1; seq <= 200; seq += 1) cache.put(detectionsText({ seq }))
      // Each waiting for its own time limit would take ten seconds.
      expect(performance.now() - startMs).toBeLessThan(1_000)
      failures.push(await failure(() => cache.latest('dock-1')))
    }
    expect(performance.now() - frozenMs).toBeLessThan(1_000)
    failures.push(
      await failure(() => cache.latest('dock-1')),
      await failure(() => cache.recent({ limit: 1 })),
    )
    expect(failures.every(({ code }) => code === 'GANTRY_CACHE_UNAVAILABLE')).toBe(true)
    expect(failures.map(({ ms }) => ms).sort((a, b) => b - a)[0]).toBeLessThan(100)
    expect(failures.at(-1)?.ms).toBeLessThan(10)
    // Of 200 puts at a time at most 64 are under way; the others are not kept anywhere.
    expect(await counted('put', 'skipped')).toBeGreaterThanOrEqual(136)
    server.resume()
    const resumedMs = performance.now()
    await isUp(cache)
    expect(performance.now() - resumedMs).toBeLessThan(2_000)
    cache.put(detectionsText({ seq: 999 }))
    await until('stored again', async () => (await cache.latest('dock-1'))?.seq === 999)
    await cache.stop()
  })

  it('R18: starts while Redis is away, and recovers from its crash', async () => {
    await server.kill()
    const { cache, lines } = redisCache(server.url)
    cache.start()
    cache.put(detectionsText())
    await until('down', () => cache.health.state === 'down')
    expect(cache.health.reason).toContain('ECONNREFUSED')
    for (let round = 0; round < 2; round += 1) {
      await server.start()
      await isUp(cache)
      cache.put(detectionsText({ seq: round + 1 }))
      await until('stored', async () => (await cache.latest('dock-1'))?.seq === round + 1)
      await server.kill()
      await until('down again', () => cache.health.state === 'down')
      expect((await failure(() => cache.latest('dock-1'))).code).toBe('GANTRY_CACHE_UNAVAILABLE')
    }
    expect(lines.filter(({ msg }) => msg === 'result cache up')).toHaveLength(2)
    await cache.stop()
  })

  it('R18: gives up a connection whose answers come five seconds late', async () => {
    const proxy = await TcpProxy.start(server.port)
    const { cache } = redisCache(`redis://127.0.0.1:${proxy.port}`)
    cache.start()
    await isUp(cache)
    proxy.fault = { kind: 'delay', ms: 5_000 }
    const failed = await failure(() => cache.latest('dock-1'))
    expect(failed).toMatchObject({ code: 'GANTRY_CACHE_UNAVAILABLE' })
    expect(failed.ms).toBeLessThan(100)
    await until('breaker open', async () => {
      await failure(() => cache.latest('dock-1'))
      return cache.health.state === 'down'
    })
    proxy.fault = { kind: 'none' }
    const healedMs = performance.now()
    await isUp(cache)
    expect(performance.now() - healedMs).toBeLessThan(2_000)
    await cache.stop()
    await proxy.stop()
  })

  it('R18: says that Redis is full, keeps answering reads, and goes on when there is room', async () => {
    const client = server.client()
    const { cache, counted, lines } = redisCache(server.url, { commandTimeoutMs: 5_000 })
    cache.start()
    await isUp(cache)
    cache.put(detectionsText({ seq: 1 }))
    await until('stored', () => cache.latest('dock-1'))
    await client.config('SET', 'maxmemory-policy', 'noeviction')
    await client.config('SET', 'maxmemory', '1mb')
    cache.put(detectionsText({ seq: 2 }))
    await until('refused', async () => (await counted('put', 'failed')) > 0)
    expect(cache.health).toMatchObject({ state: 'down' })
    expect(cache.health.reason).toMatch(/takes no writes.*OOM.*maxmemory/)
    expect((await cache.latest('dock-1'))?.seq).toBe(1)
    expect((await cache.recent({ limit: 5 })).items.map(({ seq }) => seq)).toEqual([1])
    cache.put(detectionsText({ seq: 2 }))
    await until('refused again', async () => (await counted('put', 'failed')) > 1)
    expect(lines.filter(({ level }) => Number(level) >= 40)).toHaveLength(1)
    await client.config('SET', 'maxmemory', '0')
    cache.put(detectionsText({ seq: 3 }))
    await until('stored', async () => (await cache.latest('dock-1'))?.seq === 3)
    expect(cache.health).toMatchObject({ state: 'up', reason: 'connected' })
    client.disconnect()
    await cache.stop()
  })

  it('says that the password is wrong without repeating it', async () => {
    const client = server.client()
    await client.config('SET', 'requirepass', 'right-one')
    client.disconnect()
    const { cache, lines } = redisCache(`redis://:Canary-7Pass@127.0.0.1:${server.port}`)
    cache.start()
    await until('down', () => cache.health.state === 'down')
    expect(cache.health.reason).toContain('WRONGPASS')
    expect(JSON.stringify([lines, cache.health])).not.toContain('Canary')
    await cache.stop()
  })
})
