import type { RedisCache } from '../../src/cache/redis-cache.js'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { ServerProcess } from './child.js'
import { freePort } from './free-port.js'
import { RedisServer } from './redis.js'
import { until } from './until.js'

/** Three masters that share the slots, without replicas. */
export async function redisCluster(args: readonly string[] = []) {
  const nodes: RedisServer[] = []
  const startNode = async (): Promise<RedisServer> =>
    RedisServer.start([
      '--cluster-enabled',
      'yes',
      '--cluster-node-timeout',
      '2000',
      '--cluster-port',
      String(await freePort()),
      ...args,
    ])
  try {
    for (let count = 0; count < 3; count += 1) nodes.push(await startNode())
    await joinNodes(nodes)
  } catch (error) {
    await Promise.all(nodes.map((node) => node.stop()))
    throw error
  }
  return {
    nodes,
    addresses: nodes.map(({ port }) => `127.0.0.1:${port}`),
    /** Keys of all nodes, with the node that has them. */
    keys: async () => {
      const found: { key: string; node: number }[] = []
      for (const [node, server] of nodes.entries()) {
        const client = server.client()
        for (const key of await client.keys('*')) found.push({ key, node })
        client.disconnect()
      }
      return found
    },
    /** One more node, which has what the first one has, and takes its place when that dies. */
    addReplica: async () => {
      const replica = await startNode()
      const [first, busPort] = [nodes[0], busPortOf(replica)]
      nodes.push(replica)
      const [client, own] = [first?.client(), replica.client()]
      try {
        await client?.call('CLUSTER', 'MEET', '127.0.0.1', String(replica.port), busPort)
        const id = String(await client?.call('CLUSTER', 'MYID'))
        const follows = async () => (await own.call('CLUSTER', 'REPLICATE', id)) === 'OK'
        await until('a replica', follows, 60_000)
        await until(
          'its copy',
          async () => /master_link_status:up/.test(await own.info('replication')),
          60_000,
        )
        // Its master tells the others of it, who have to vote for it.
        const known = async (node: RedisServer) => {
          const asked = node.client()
          const told = String(await asked.call('CLUSTER', 'NODES'))
          asked.disconnect()
          return new RegExp(`:${replica.port}@\\d+\\S* slave ${id} `).test(told)
        }
        const all = async () => (await Promise.all(nodes.slice(0, 3).map(known))).every(Boolean)
        await until('a replica that all know', all, 60_000)
      } finally {
        client?.disconnect()
        own.disconnect()
      }
      return replica
    },
    stop: () => Promise.all(nodes.map((node) => node.stop())),
  }
}

function busPortOf({ args }: RedisServer): string {
  return args[args.indexOf('--cluster-port') + 1] ?? ''
}

async function joinNodes(nodes: readonly RedisServer[]): Promise<void> {
  const clients = nodes.map((node) => node.client())
  const slots = 16_384
  try {
    for (const [index, client] of clients.entries()) {
      const [first, last] = [index, index + 1].map((part) => Math.floor((part * slots) / clients.length)) as [
        number,
        number,
      ]
      await client.call('CLUSTER', 'ADDSLOTSRANGE', String(first), String(last - 1))
      await client.call('CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1))
    }
    const [first] = clients
    for (const node of nodes.slice(1))
      await first?.call('CLUSTER', 'MEET', '127.0.0.1', String(node.port), busPortOf(node))
    await until(
      'the cluster',
      async () => {
        const states = await Promise.all(clients.map((client) => client.call('CLUSTER', 'INFO')))
        return states.every(
          (state) => /cluster_state:ok/.test(String(state)) && /cluster_known_nodes:3/.test(String(state)),
        )
      },
      60_000,
    )
  } finally {
    for (const client of clients) client.disconnect()
  }
}

/** A master with a replica, and three sentinels that make the replica the master within seconds when it dies. */
export async function redisWithSentinels(name: string, sentinelPassword: string) {
  const master = await RedisServer.start()
  const replica = await RedisServer.start(['--replicaof', '127.0.0.1', String(master.port)])
  const ports = [await freePort(), await freePort(), await freePort()]
  const sentinels = ports.map((port) => {
    const file = join(master.folder, `sentinel-${port}.conf`)
    const lines = [
      `port ${port}`,
      'bind 127.0.0.1',
      `requirepass ${sentinelPassword}`,
      `sentinel monitor ${name} 127.0.0.1 ${master.port} 2`,
      `sentinel down-after-milliseconds ${name} 1000`,
      `sentinel failover-timeout ${name} 3000`,
    ]
    writeFileSync(file, `${lines.join('\n')}\n`)
    return ServerProcess.start('redis-server', [file, '--sentinel'], `${file}.log`)
  })
  const stop = async () => {
    await Promise.all(sentinels.map((sentinel) => sentinel.end('SIGKILL')))
    await Promise.all([master.stop(), replica.stop()])
  }
  const client = new Redis(ports[0] ?? 0, '127.0.0.1', {
    password: sentinelPassword,
    retryStrategy: () => 50,
  })
  client.on('error', () => undefined)
  try {
    await until(
      'sentinels that know each other and the replica',
      async () => {
        const told = (await client.call('SENTINEL', 'MASTER', name)) as string[]
        const of = (field: string) => told[told.indexOf(field) + 1]
        return of('num-other-sentinels') === '2' && of('num-slaves') === '1'
      },
      60_000,
    )
  } catch (error) {
    await stop()
    throw error
  } finally {
    client.disconnect()
  }
  return { master, replica, addresses: ports.map((port) => `127.0.0.1:${port}`), stop }
}

/** A cluster or a set of sentinels takes its time to agree. Rejects with the reason why the cache is not up. */
export function cacheUp(cache: RedisCache): Promise<true> {
  return until(
    'cache up',
    () => {
      if (cache.health.state === 'up') return true
      throw new Error(cache.health.reason)
    },
    30_000,
  )
}
