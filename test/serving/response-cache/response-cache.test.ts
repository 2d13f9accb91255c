import { describe, expect, it, onTestFinished } from 'vitest'
import type { InferRequest } from '../../../src/runtime/infer.js'
import { CachedModel } from '../../../src/serving/response-cache/cached-model.js'
import { MemoryResponseCache } from '../../../src/serving/response-cache/memory-response-cache.js'
import { RedisResponseCache } from '../../../src/serving/response-cache/redis-response-cache.js'
import { requestKey } from '../../../src/serving/response-cache/request-key.js'
import { decodeTensors, encodeTensors } from '../../../src/serving/response-cache/tensor-record.js'
import type { Tensor } from '../../../src/tensors/tensor.js'
import { FakeLoadedModel } from '../../support/fake-loaded-model.js'
import { freePort } from '../../support/free-port.js'
import { redisCluster, redisWithSentinels } from '../../support/redis-groups.js'
import { redisMissing, RedisServer } from '../../support/redis.js'
import { silentLog } from '../../support/silent-log.js'

const tensor = (name: string, ...values: number[]): Tensor => ({
  name,
  datatype: 'UINT8',
  shape: [values.length],
  data: Uint8Array.from(values),
})

const request = (more: Partial<InferRequest> = {}): InferRequest => ({
  ...FakeLoadedModel.request,
  inputs: [tensor('in', 1, 2, 3)],
  ...more,
})

function cached(cache = new MemoryResponseCache(10_000)) {
  const model = new FakeLoadedModel({ name: 'm', version: '1', versionDir: '' })
  return { model, cached: new CachedModel(model, cache) }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('a model with a response cache', () => {
  it('answers what it was asked before without running, and counts hits and misses', async () => {
    const { model, cached: server } = cached()
    const first = server.infer(request())
    await settled()
    model.answer([tensor('out', 9)])
    expect(await first).toEqual([tensor('out', 9)])
    expect(await server.infer(request())).toEqual([tensor('out', 9)])
    expect(model.asked).toHaveLength(1)
    const { inference } = server.statistics()
    expect([inference.cache_hit.count, inference.cache_miss.count]).toEqual([1, 1])
  })

  it('runs one of several that are the same and come at once', async () => {
    const { model, cached: server } = cached()
    const asked = [server.infer(request()), server.infer(request()), server.infer(request({ id: 'other' }))]
    await settled()
    expect(model.asked).toHaveLength(1)
    model.answer([tensor('out', 9)])
    expect(await Promise.all(asked)).toEqual(Array(3).fill([tensor('out', 9)]))
    const { inference } = server.statistics()
    expect([inference.cache_hit.count, inference.cache_miss.count]).toEqual([2, 1])
  })

  it('lets the others run by themselves when the one fails, and keeps no failure', async () => {
    const { model, cached: server } = cached()
    const asked = [server.infer(request()), server.infer(request())]
    const outcomes = Promise.allSettled(asked)
    await settled()
    model.fail(new Error('its client is gone'))
    await expect.poll(() => model.asked.length).toBe(2)
    model.answer([tensor('out', 9)])
    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
  })

  it('keeps nothing of sequences', async () => {
    const { model, cached: server } = cached()
    for (let i = 0; i < 2; i++) {
      const asked = server.infer(request({ sequence: { id: '7', start: true, end: false } }))
      model.answer([])
      await asked
    }
    expect(model.asked).toHaveLength(2)
  })

  it('gives its outputs to several without the mark that they may be moved', async () => {
    const { model, cached: server } = cached()
    const asked = server.infer(request())
    await settled()
    model.answer([{ ...tensor('out', 9), movable: true }])
    expect((await asked)[0]).not.toHaveProperty('movable')
  })
})

describe('the key of a request', () => {
  const key = (more: Partial<InferRequest> = {}, generation = 'g') =>
    requestKey('m', '1', generation, request(more))

  it.each<[string, Partial<InferRequest>]>([
    ['a byte', { inputs: [tensor('in', 1, 2, 4)] }],
    ['a name', { inputs: [tensor('other', 1, 2, 3)] }],
    ['a shape', { inputs: [{ ...tensor('in', 1, 2, 3), shape: [3, 1] }] }],
    ['a datatype', { inputs: [{ ...tensor('in', 1, 2, 3), datatype: 'INT8' }] }],
    ['an input more', { inputs: [tensor('in', 1, 2, 3), tensor('x')] }],
    ['the outputs asked for', { outputs: [{ name: 'out', classification: 0 }] }],
    ['a parameter', { parameters: { threshold: 0.5 } }],
  ])('differs by %s', async (_, more) => {
    expect(await key(more)).not.toBe(await key())
  })

  it('does not depend on the order of inputs, the id or the priority', async () => {
    const inputs = [tensor('a', 1), tensor('b', 2)]
    expect(await key({ inputs })).toBe(await key({ inputs: inputs.toReversed() }))
    expect(await key({ id: 'x', priority: 3 })).toBe(await key())
  })

  it('differs by the model that would answer', async () => {
    expect(await key({}, 'another file')).not.toBe(await key())
    expect(await requestKey('m', '2', 'g', request())).not.toBe(await key())
  })
})

describe('the local cache', () => {
  it('forgets what was used longest ago when it is full', async () => {
    const cache = new MemoryResponseCache(3_000)
    const big = [{ ...tensor('out'), shape: [900], data: new Uint8Array(900) }]
    for (const key of ['a', 'b']) await cache.put(key, big)
    await cache.get('a')
    await cache.put('c', big)
    expect(await cache.get('b')).toBeUndefined()
    expect(await cache.get('a')).toBeDefined()
    expect(await cache.get('c')).toBeDefined()
  })

  it('does not take an answer that is larger than itself', async () => {
    const cache = new MemoryResponseCache(1_000)
    await cache.put('a', [{ ...tensor('out'), data: new Uint8Array(5_000) }])
    expect(await cache.get('a')).toBeUndefined()
  })

  it('is not changed by who wrote the answer', async () => {
    const cache = new MemoryResponseCache(10_000)
    const answer = tensor('out', 1)
    await cache.put('a', [answer])
    answer.data[0] = 2
    expect((await cache.get('a'))?.[0]?.data[0]).toBe(1)
  })
})

describe('records of answers', () => {
  it('come back as they went', async () => {
    const tensors = [tensor('a', 1, 2), { ...tensor('b'), shape: [0, 4] }, tensor('ü', 3)]
    expect(
      decodeTensors(await encodeTensors(tensors)).map((each) => ({
        ...each,
        data: Uint8Array.from(each.data),
      })),
    ).toEqual(tensors)
  })

  it.each([0, 3, 10, 50])('are refused when only %i bytes are left of them', async (bytes) => {
    const record = await encodeTensors([tensor('a', 1, 2)])
    expect(() => decodeTensors(record.subarray(0, bytes))).toThrow()
  })
})

const noRedis = redisMissing()

describe('the cache in Redis', () => {
  it('has nothing, and holds nobody up, while Redis is away', async () => {
    const url = `redis://127.0.0.1:${await freePort()}`
    const cache = new RedisResponseCache({ redis: url, ttlSeconds: 60 }, silentLog())
    onTestFinished(() => cache.close())
    await cache.put('a', [tensor('out', 1)])
    expect(await cache.get('a')).toBeUndefined()
  })

  it.skipIf(noRedis)('shares answers between services, and is no cache while Redis hangs', async () => {
    const redis = await RedisServer.start()
    onTestFinished(() => redis.stop())
    const [one, two] = [1, 2].map(
      () => new RedisResponseCache({ redis: redis.url, ttlSeconds: 60 }, silentLog()),
    )
    onTestFinished(async () => void (await Promise.all([one?.close(), two?.close()])))
    await expect
      .poll(async () => {
        await one?.put('a', [tensor('out', 1)])
        return (await two?.get('a'))?.map(({ name, data }) => [name, ...data])
      })
      .toEqual([['out', 1]])
    redis.freeze()
    expect(await two?.get('a')).toBeUndefined()
    redis.resume()
    await expect.poll(async () => (await two?.get('a'))?.length, { timeout: 5_000 }).toBe(1)
  })
  it.skipIf(noRedis).each(['cluster', 'sentinels'] as const)(
    'R79: shares answers between services by a Redis of many: %s',
    { timeout: 240_000 },
    async (kind) => {
      const password = 'sentinel-secret'
      const group = kind === 'cluster' ? await redisCluster() : await redisWithSentinels('plant', password)
      onTestFinished(async () => void (await group.stop()))
      const redis =
        kind === 'cluster'
          ? { nodes: group.addresses }
          : { sentinels: group.addresses, name: 'plant', sentinelPassword: password }
      // The machine may be busy, and its time limit is not the subject here.
      const settings = { redis, ttlSeconds: 60, commandTimeoutMs: 5_000 }
      const [one, two] = [1, 2].map(() => new RedisResponseCache(settings, silentLog()))
      onTestFinished(async () => void (await Promise.all([one?.close(), two?.close()])))
      for (const key of ['a', 'b', 'c', 'd', 'e', 'f'])
        await expect
          .poll(
            async () => {
              await one?.put(key, [tensor('out', 1)])
              return (await two?.get(key))?.map(({ name, data }) => [name, ...data])
            },
            { timeout: 60_000 },
          )
          .toEqual([['out', 1]])
    },
  )
})
