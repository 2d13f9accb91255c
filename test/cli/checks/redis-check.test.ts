import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkRedis } from '../../../src/cli/checks/redis-check.js'
import { redisMissing, RedisServer } from '../../support/redis.js'

describe.skipIf(redisMissing() !== undefined)('checkRedis', () => {
  let redis: RedisServer
  beforeAll(async () => {
    redis = await RedisServer.start()
  })
  afterAll(() => redis.stop())

  it('is content with a Redis that answers', async () => {
    expect(await checkRedis(redis.url, true)).toMatchObject([{ state: 'ok', detail: 'answers' }])
  })

  it('gives up on one that is frozen', { timeout: 15_000 }, async () => {
    redis.freeze()
    const [finding] = await checkRedis(redis.url, true)
    redis.resume()
    expect(finding).toMatchObject({ state: 'failed' })
    expect(finding?.fix).toBeTruthy()
  })
})
