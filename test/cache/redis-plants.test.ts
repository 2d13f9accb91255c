import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { RedisCache } from '../../src/cache/redis-cache.js'
import { checkRedis } from '../../src/cli/checks/redis-check.js'
import { modelsSchema } from '../../src/config/models.js'
import { cacheSchema, type CacheConfig } from '../../src/config/outputs.js'
import type { RedisConfig } from '../../src/config/redis.js'
import { createServiceMetrics } from '../../src/metrics/service-metrics.js'
import { detectionsText } from '../support/detections.js'
import { freePort } from '../support/free-port.js'
import { cacheUp, redisWithSentinels } from '../support/redis-groups.js'
import { redisMissing, RedisServer } from '../support/redis.js'
import { recordingLog } from '../support/silent-log.js'
import { tempDir } from '../support/temp-dir.js'
import { TestAuthority } from '../support/test-authority.js'
import { until } from '../support/until.js'
import { allPages } from './cache-contract.js'

const ended: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end()
})

function redisCache(redis: RedisConfig, overrides: Partial<CacheConfig> = {}) {
  const metrics = createServiceMetrics()
  const { log, lines } = recordingLog()
  const config = { ...cacheSchema.parse({ redis }), commandTimeoutMs: 5_000, ...overrides, redis }
  const cache = new RedisCache(config, metrics, log)
  ended.push(() => cache.stop())
  cache.start()
  const counted = async (metric: 'cacheOperations' | 'cacheForeign', operation: string) => {
    const { values } = await metrics[metric].get()
    return values.filter(({ labels }) => labels.operation === operation)
  }
  return { cache, lines, counted }
}

async function told(redis: RedisConfig): Promise<string> {
  const models = modelsSchema.parse({})
  const [finding] = await checkRedis({ cache: cacheSchema.parse({ redis }), models }, true)
  return `${finding?.state}: ${finding?.detail}; ${finding?.fix ?? ''}`
}

/** Puts until it is there: a put that falls into a change of masters is lost, as is meant. */
async function kept(cache: RedisCache, cameraId: string, seq: number): Promise<void> {
  await until(
    'kept',
    async () => {
      cache.put(detectionsText({ cameraId, seq }))
      return (await cache.latest(cameraId))?.seq === seq
    },
    30_000,
  )
}

describe.skipIf(redisMissing() !== undefined)('RedisCache and a server that takes no writes', () => {
  it('R76: is down before a replica, in one line of the log, and up once it takes writes', async () => {
    const master = await RedisServer.start()
    ended.push(() => master.stop())
    const replica = await RedisServer.start(['--replicaof', '127.0.0.1', String(master.port)])
    ended.push(() => replica.stop())
    const { cache, lines } = redisCache(replica.url)
    await until('down', () => cache.health.state === 'down')
    expect(cache.health.reason).toMatch(/replica.*READONLY.*cache\.redis/)
    // Long enough for dozens of tries.
    let seen = 0
    await until('a hundred looks', () => {
      cache.put(detectionsText({ seq: (seen += 1) }))
      expect(cache.health.state).toBe('down')
      return seen === 100
    })
    expect(lines.map(({ msg }) => msg)).toEqual(['result cache down, retrying'])
    const client = replica.client()
    await client.call('REPLICAOF', 'NO', 'ONE')
    client.disconnect()
    await cacheUp(cache)
    await kept(cache, 'dock-1', 1_000)
    expect(lines).toHaveLength(2)
  })

  it('R76: says that Redis is full from the start, and is up when there is room without a result that comes', async () => {
    const server = await RedisServer.start()
    ended.push(() => server.stop())
    const client = server.client()
    ended.push(() => client.disconnect())
    await client.config('SET', 'maxmemory', '1mb')
    const { cache, lines } = redisCache(server.url)
    await until('down', () => cache.health.state === 'down')
    expect(cache.health.reason).toMatch(/takes no writes: it is full .*OOM.*maxmemory/)
    expect((await cache.recent({ limit: 5 })).items).toEqual([])
    await client.config('SET', 'maxmemory', '0')
    await cacheUp(cache)
    expect(lines.map(({ msg }) => msg)).toEqual([
      'redis takes no writes, results are not kept',
      'result cache up',
    ])
  })

  it('R76: is down where the user may read and not write, in one line', async () => {
    const server = await RedisServer.start()
    ended.push(() => server.stop())
    const client = server.client()
    ended.push(() => client.disconnect())
    await client.call(
      'ACL',
      'SETUSER',
      'reader',
      'on',
      '>secret',
      '~*',
      '+@read',
      '+@connection',
      '+@scripting',
    )
    const { cache, lines } = redisCache({ url: server.url, username: 'reader', password: 'secret' })
    await until('down', () => cache.health.state === 'down')
    expect(cache.health.reason).toMatch(/may not do it|NOPERM/)
    expect(lines).toHaveLength(1)
  })
})

describe.skipIf(redisMissing() !== undefined)('RedisCache and keys of somebody else', () => {
  it('R77: passes over other types under its names, counts them, and goes on', async () => {
    const server = await RedisServer.start()
    ended.push(() => server.stop())
    const client = server.client()
    ended.push(() => client.disconnect())
    await client.rpush('gantry:v1:latest:dock-1', 'a list')
    await client.set('gantry:v1:results:dock-1', 'a text')
    await client.set('gantry:v1:index:dock-2', 'a text')
    const { cache, counted, lines } = redisCache(server.url)
    await cacheUp(cache)
    await kept(cache, 'dock-3', 1)
    cache.put(detectionsText({ cameraId: 'dock-1' }))
    cache.put(detectionsText({ cameraId: 'dock-2' }))
    await until('counted', async () => ((await counted('cacheForeign', 'put'))[0]?.value ?? 0) >= 3)
    expect(await cache.latest('dock-1')).toBeUndefined()
    expect((await cache.latest('dock-2'))?.cameraId).toBe('dock-2')
    expect((await cache.recent({ cameraId: 'dock-2', limit: 5 })).items).toEqual([])
    expect((await cache.recent({ limit: 5 })).items.map(({ cameraId }) => cameraId)).toEqual(['dock-3'])
    await cache.forget('dock-1')
    expect(await client.lrange('gantry:v1:latest:dock-1', 0, -1)).toEqual(['a list'])
    expect(await client.get('gantry:v1:results:dock-1')).toBe('a text')
    expect(cache.health).toMatchObject({ state: 'up' })
    expect(lines.filter(({ msg }) => msg === 'keys of somebody else are ignored')).toHaveLength(1)
  })

  it('R77: passes over values that are no result, members that are no order key, and other versions', async () => {
    const server = await RedisServer.start()
    ended.push(() => server.stop())
    const client = server.client()
    ended.push(() => client.disconnect())
    const { cache, counted } = redisCache(server.url)
    await cacheUp(cache)
    await kept(cache, 'dock-1', 1)
    const [key = ''] = await client.zrange('gantry:v1:index:dock-1', '0', '-1')
    const other = key.replace(/1$/, '2')
    for (const index of ['gantry:v1:index', 'gantry:v1:index:dock-1']) {
      await client.zadd(index, '0', 'hello', '0', '999:::', '0', other)
    }
    await client.hset('gantry:v1:results:dock-1', other, '{"cameraId":7}')
    await client.set('gantry:v1:latest:dock-2', 'no json')
    await client.set('gantry:v2:latest:dock-1', '{"of":"another version"}')
    expect(await cache.latest('dock-2')).toBeUndefined()
    for (const query of [{ limit: 10 }, { limit: 10, cameraId: 'dock-1' }])
      expect((await allPages(cache, query)).flatMap(({ items }) => items.map(({ seq }) => seq))).toEqual([1])
    expect((await counted('cacheForeign', 'recent'))[0]?.value).toBeGreaterThan(0)
    expect((await counted('cacheForeign', 'latest'))[0]?.value).toBe(1)
    expect(cache.health).toMatchObject({ state: 'up' })
  })

  it('R77: passes over an index of another type', async () => {
    const server = await RedisServer.start()
    ended.push(() => server.stop())
    const client = server.client()
    ended.push(() => client.disconnect())
    await client.set('gantry:v1:index', 'a text')
    const { cache } = redisCache(server.url)
    await cacheUp(cache)
    await kept(cache, 'dock-1', 1)
    expect((await cache.recent({ limit: 5 })).items).toEqual([])
    expect((await cache.recent({ limit: 5, cameraId: 'dock-1' })).items).toHaveLength(1)
  })
})

describe.skipIf(redisMissing() !== undefined)('RedisCache and TLS', () => {
  async function tlsServer(args: (authority: TestAuthority) => readonly string[] = () => []) {
    const authority = new TestAuthority()
    ended.push(() => authority.remove())
    const { cert, key } = authority.issue('redis')
    const port = await freePort()
    const files = ['--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', authority.ca]
    const server = await RedisServer.start([
      '--tls-port',
      String(port),
      ...files,
      '--tls-auth-clients',
      'no',
      ...args(authority),
    ])
    ended.push(() => server.stop())
    return { authority, server, port, url: `rediss://127.0.0.1:${port}` }
  }

  it(
    'R78: trusts the CA of the settings, and tells another CA, an expired certificate and a wrong name',
    { timeout: 60_000 },
    async () => {
      const { authority, url, port, server } = await tlsServer()
      const ca = authority.ca
      expect(await told({ url, tls: { ca } })).toMatch(/^ok/)
      expect(await told({ url: `redis://127.0.0.1:${port}`, tls: { ca } })).toMatch(/^ok/)
      expect(await told(url)).toMatch(
        /^failed: .*not signed by a CA that is trusted.*set cache\.redis\.tls\.ca/,
      )
      expect(await told({ url: server.url, tls: { ca } })).toMatch(/^failed: /)
      const client = server.client()
      ended.push(() => client.disconnect())
      const expired = authority.issue('expired', { expired: true })
      await client.config('SET', 'tls-cert-file', expired.cert, 'tls-key-file', expired.key)
      expect(await told({ url, tls: { ca } })).toMatch(/has expired; renew it .*cache\.redis\.tls\.ca/)
      const renamed = authority.issue('renamed', { names: 'DNS:redis.plant.example' })
      await client.config('SET', 'tls-cert-file', renamed.cert, 'tls-key-file', renamed.key)
      expect(await told({ url, tls: { ca } })).toMatch(
        /another name: .*redis\.plant\.example.*cache\.redis\.tls\.servername/,
      )
      const servername = 'redis.plant.example'
      expect(await told({ url, tls: { ca, servername } })).toMatch(/^ok/)
      const { cache } = redisCache({ url, tls: { ca } })
      await until('down', () => cache.health.state === 'down')
      expect(cache.health.reason).toMatch(/another name: .*cache\.redis\.tls\.servername/)
    },
  )

  it(
    'R78: shows a certificate of its own, and reads its files again when it connects the next time',
    { timeout: 60_000 },
    async () => {
      const { authority, url } = await tlsServer(() => ['--tls-auth-clients', 'yes'])
      const stranger = new TestAuthority('stranger')
      ended.push(() => stranger.remove())
      const dir = tempDir()
      const tls = { ca: join(dir, 'ca.pem'), ...authority.issue('gantry') }
      copyFileSync(authority.ca, tls.ca)
      expect(await told({ url, tls: { ca: tls.ca } })).toMatch(
        /^failed: .*certificate.*cache\.redis\.tls\.cert/,
      )
      copyFileSync(stranger.ca, tls.ca)
      const { cache } = redisCache({ url, tls })
      await until('down', () => /not signed by a CA/.test(cache.health.reason))
      copyFileSync(authority.ca, tls.ca)
      await cacheUp(cache)
      await kept(cache, 'dock-1', 1)
    },
  )
})

describe.skipIf(redisMissing() !== undefined)('RedisCache and sentinels', () => {
  it(
    'R79: goes over to the master that the sentinels name when the one before dies',
    { timeout: 180_000 },
    async () => {
      const set = await redisWithSentinels('plant', 'sentinel secret'.replace(' ', '-'))
      ended.push(() => set.stop())
      const redis = { sentinels: set.addresses, name: 'plant', sentinelPassword: 'sentinel-secret' }
      expect(await told(redis)).toMatch(/^ok/)
      expect(await told({ ...redis, name: 'other' })).toMatch(
        /^failed: no sentinel names a master .*cache\.redis\.sentinels/,
      )
      expect(await told({ ...redis, sentinelPassword: 'Canary-7Pass' })).toMatch(
        /^failed: .*(sentinelPassword|login)/,
      )
      const { cache } = redisCache(redis)
      await cacheUp(cache)
      await kept(cache, 'dock-1', 1)
      await set.master.kill()
      await until('down', () => cache.health.state === 'down', 30_000)
      await until('up again', () => cache.health.state === 'up', 60_000)
      await kept(cache, 'dock-1', 2)
      const client = set.replica.client()
      ended.push(() => client.disconnect())
      expect(await client.exists('gantry:v1:latest:dock-1')).toBe(1)
    },
  )
})
