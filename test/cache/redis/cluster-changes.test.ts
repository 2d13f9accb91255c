import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { RedisCache } from '../../../src/cache/redis-cache.js'
import { cacheSchema } from '../../../src/config/outputs.js'
import { createServiceMetrics } from '../../../src/metrics/service-metrics.js'
import { detectionsText } from '../../support/detections.js'
import { cacheUp, redisCluster } from '../../support/redis-groups.js'
import { redisMissing } from '../../support/redis.js'
import { silentLog } from '../../support/silent-log.js'
import { until } from '../../support/until.js'

const patient = 60_000

describe.skipIf(redisMissing() !== undefined)('RedisCache and a cluster that changes', () => {
  let cluster: Awaited<ReturnType<typeof redisCluster>>
  beforeAll(async () => {
    cluster = await redisCluster()
    await cluster.addReplica()
  }, 240_000)
  afterAll(() => cluster?.stop())

  async function startedCache(): Promise<RedisCache> {
    const config = { ...cacheSchema.parse({}), redis: { nodes: cluster.addresses }, commandTimeoutMs: 5_000 }
    const cache = new RedisCache(config, createServiceMetrics(), silentLog())
    onTestFinished(() => cache.stop())
    cache.start()
    await cacheUp(cache)
    return cache
  }

  /** One camera for each master, by the node that has its keys. */
  async function cameraOfEach(cache: RedisCache): Promise<Map<number, string>> {
    const found = new Map<number, string>()
    for (let number = 0; found.size < 3; number += 1) {
      const cameraId = `dock-${number}`
      cache.put(detectionsText({ cameraId, seq: 1 }))
      await until('kept', () => cache.latest(cameraId), patient)
      const node = (await cluster.keys()).find(({ key }) => key === `gantry:v1:latest:{${cameraId}}`)?.node
      if (node !== undefined && node < 3 && !found.has(node)) found.set(node, cameraId)
    }
    return found
  }

  /** Puts until a newer result than before is read: what is put while a node is away is not kept, as of any cache. */
  const keepsNew = (cache: RedisCache, cameraId: string, seq: number) =>
    until(
      `a result of ${cameraId}`,
      async () => {
        cache.put(detectionsText({ cameraId, seq }))
        return (await cache.latest(cameraId).catch(() => undefined))?.seq === seq
      },
      patient,
    )

  it('R79: follows a camera whose slot moves to another node', { timeout: 240_000 }, async () => {
    const cache = await startedCache()
    const cameras = await cameraOfEach(cache)
    const cameraId = cameras.get(1) ?? ''
    const [from, to] = [cluster.nodes[1]!, cluster.nodes[2]!]
    const clients = [from.client(), to.client(), cluster.nodes[0]!.client()] as const
    onTestFinished(() => clients.forEach((client) => client.disconnect()))
    const [source, target] = clients
    const slot = String(await source.call('CLUSTER', 'KEYSLOT', `{${cameraId}}`))
    const [sourceId, targetId] = [
      String(await source.call('CLUSTER', 'MYID')),
      String(await target.call('CLUSTER', 'MYID')),
    ]
    await target.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', sourceId)
    await source.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', targetId)
    const keys = (await source.call('CLUSTER', 'GETKEYSINSLOT', slot, '100')) as string[]
    await source.call('MIGRATE', '127.0.0.1', String(to.port), '', '0', '5000', 'REPLACE', 'KEYS', ...keys)
    for (const client of [target, source, clients[2]])
      await client.call('CLUSTER', 'SETSLOT', slot, 'NODE', targetId)

    expect((await until('what was kept', () => cache.latest(cameraId), patient)).seq).toBe(1)
    await keepsNew(cache, cameraId, 2)
    for (const other of cameras.values()) await keepsNew(cache, other, 3)
    expect(cache.health.state).toBe('up')
  })

  it('R79: goes on when a master dies, with its replica', { timeout: 240_000 }, async () => {
    const cache = await startedCache()
    const cameras = await cameraOfEach(cache)
    const cameraId = cameras.get(0) ?? ''
    const before = cluster.nodes[3]!.client()
    onTestFinished(() => before.disconnect())
    await until('a copy', async () => Number(await before.dbsize()) > 0, patient)
    await cluster.nodes[0]!.stop()
    await keepsNew(cache, cameraId, 4)
    for (const other of cameras.values()) await keepsNew(cache, other, 5)
    await cacheUp(cache)
  })
})
