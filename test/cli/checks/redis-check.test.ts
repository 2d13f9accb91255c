import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkRedis } from '../../../src/cli/checks/redis-check.js'
import { modelsSchema } from '../../../src/config/models.js'
import { cacheSchema } from '../../../src/config/outputs.js'
import type { RedisConfig } from '../../../src/config/redis.js'
import { redisMissing, RedisServer } from '../../support/redis.js'

/** Findings on one Redis. */
function checked(redis: RedisConfig) {
  return checkRedis({ cache: cacheSchema.parse({ redis }), models: modelsSchema.parse({}) }, true)
}

/** What is said of it in one line. */
async function told(redis: RedisConfig): Promise<string> {
  const [finding] = await checked(redis)
  return `${finding?.state}: ${finding?.detail}; ${finding?.fix ?? ''}`
}

describe.skipIf(redisMissing() !== undefined)('checkRedis', () => {
  let redis: RedisServer
  beforeAll(async () => {
    redis = await RedisServer.start()
  })
  afterAll(() => redis.stop())

  it('is content with a Redis that answers and takes writes, and leaves nothing there', async () => {
    expect(await told(redis.url)).toBe('ok: answers, and takes writes; ')
    const client = redis.client()
    expect(await client.keys('*')).toEqual([])
    client.disconnect()
  })

  it('looks at the Redis of the response cache too', async () => {
    const models = modelsSchema.parse({ cache: { redis: redis.url } })
    expect(await checkRedis({ cache: cacheSchema.parse({}), models }, true)).toMatchObject([
      { state: 'ok', subject: expect.stringContaining('models.cache.redis') as string },
    ])
  })

  it('R76: tells a replica that takes no writes', async () => {
    const replica = await RedisServer.start(['--replicaof', '127.0.0.1', String(redis.port)])
    const client = redis.client()
    try {
      expect(await told(replica.url)).toMatch(
        /^failed: it is a replica.*READONLY.*; name the master in cache\.redis/,
      )
    } finally {
      client.disconnect()
      await replica.stop()
    }
  })

  it('R76: tells a Redis that is full, and a user who may not write, run scripts or use our keys', async () => {
    const client = redis.client()
    await client.config('SET', 'maxmemory', '1mb')
    expect(await told(redis.url)).toMatch(/^failed: it is full.*OOM.*; raise maxmemory/)
    await client.config('SET', 'maxmemory', '0')
    const users = {
      reader: ['~*', '+@read', '+@connection'],
      noscript: ['~*', '+@all', '-@scripting'],
      elsewhere: ['~other:*', '+@all'],
    }
    for (const [name, rules] of Object.entries(users)) {
      await client.call('ACL', 'SETUSER', name, 'on', '>secret', ...rules)
      const url = redis.url.replace('://', `://${name}:secret@`)
      expect(await told(url), name).toMatch(
        /^failed: the user may not do it .*NOPERM.*; give the user of the ACL/i,
      )
    }
    await client.call(
      'ACL',
      'SETUSER',
      'gantry',
      'on',
      '>secret',
      '~gantry:*',
      '+@read',
      '+@write',
      '+@scripting',
      '+@connection',
    )
    expect(await told({ url: redis.url, username: 'gantry', password: 'secret' })).toMatch(/^ok/)
    const wrong = await told({ url: redis.url, username: 'gantry', password: 'Canary-7Pass' })
    expect(wrong).toMatch(/^failed: the login is refused .*; correct username and password of cache\.redis/)
    expect(wrong).not.toContain('Canary')
    client.disconnect()
  })

  it('tells a cluster from a single server', async () => {
    expect(await told({ nodes: [`127.0.0.1:${redis.port}`] })).toMatch(
      /^failed: it is no node of a cluster .*cache\.redis\.url/,
    )
    const node = await RedisServer.start(['--cluster-enabled', 'yes'])
    try {
      expect(await told(node.url)).toMatch(/^failed: it is a node of a cluster .*cache\.redis\.nodes/)
    } finally {
      await node.stop()
    }
  })

  it('gives up on one that is frozen', { timeout: 20_000 }, async () => {
    redis.freeze()
    const [finding] = await checked(redis.url)
    redis.resume()
    expect(finding).toMatchObject({ state: 'failed' })
    expect(finding?.fix).toBeTruthy()
  })
})
