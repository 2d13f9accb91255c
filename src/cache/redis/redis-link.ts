import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { wallMs } from '../../lifecycle/clock.js'
import { atMost } from '../../lifecycle/delay.js'
import { redisAdvice } from '../../lifecycle/redis-advice.js'
import type { RedisClient, RedisConnections } from '../../lifecycle/redis-client.js'
import type { ConnectionAdvice } from '../../lifecycle/tls-failure.js'
import { orderKey, paddedTime } from '../order-key.js'
import { ClusterStore } from './cluster-store.js'
import type { ResultStore } from './result-store.js'
import { allScripts } from './scripts.js'
import { SingleStore } from './single-store.js'

/** Longest that connecting and logging in may take. */
const usualOpenMs = 800
/** Life of what a probe leaves behind when it is cut off. */
const probeLifeMs = 10_000

export type LinkSettings = Readonly<{
  connections: RedisConnections
  /** Where it stands in the settings: `cache.redis`. */
  setting: string
  keyPrefix: string
  commandTimeoutMs: number
  openMs?: number
}>

/** Redis cannot be reached, or cannot serve. `cause` is what the client library said. */
export class RedisUnreachableError extends Error {
  constructor(
    readonly advice: ConnectionAdvice,
    cause: unknown,
  ) {
    super(`${advice.reason}; ${advice.fix}`, { cause })
    this.name = 'RedisUnreachableError'
  }
}

/** One connection to Redis. It is never mended: after a failure it is closed and a new one opened. */
export class RedisLink {
  /** Resolves when the connection is over, whoever ended it. */
  readonly ended: Promise<void>
  readonly store: ResultStore

  private constructor(
    readonly client: RedisClient,
    readonly settings: LinkSettings,
  ) {
    this.ended = new Promise((resolve) => client.once('end', () => resolve()))
    this.store = this.#storeUnder(settings.keyPrefix)
  }

  /** @throws RedisUnreachableError when Redis does not serve in time. */
  static async open(settings: LinkSettings): Promise<RedisLink> {
    const openMs = settings.openMs ?? usualOpenMs
    const { commandTimeoutMs } = settings
    const client = await settings.connections.create({ connectTimeoutMs: openMs, commandTimeoutMs })
    let failure: unknown
    const heard = (error: unknown) => (failure ??= error)
    client.on('error', heard)
    // Of a cluster and of sentinels.
    for (const event of ['node error', '+node error', 'sentinelError']) client.on(event, heard)
    const link = new RedisLink(client, settings)
    try {
      const ready = await atMost(
        openMs,
        client
          .connect()
          .then(() => link.#loadScripts())
          .then(() => true),
      )
      if (ready === undefined) throw new Error(`no answer within ${openMs} ms`)
      return link
    } catch (error) {
      link.close()
      throw new RedisUnreachableError(redisAdvice(error, failure, settings.setting), error)
    }
  }

  /** Writes, reads and deletes as results are, under names of its own. @throws as the commands of {@link store} */
  async probe(): Promise<void> {
    const name = randomUUID()
    const store = this.#storeUnder(`${this.settings.keyPrefix}v1:probe:${name}:`)
    const capturedAtMs = wallMs()
    const key = orderKey({ cameraId: name, seq: 1, capturedAtMs })
    const lives = { ttlMs: probeLifeMs, recentTtlMs: probeLifeMs }
    const expired = paddedTime(capturedAtMs - probeLifeMs)
    await store.put({ cameraId: name, json: Buffer.from('{}'), key, capacity: 1, expired, ...lives })
    const { json } = await store.latest(name)
    const range = { atLeast: paddedTime(0), below: ':', look: 1, most: 1, contains: '' }
    const { results } = await store.page({ cameraId: undefined, ...range })
    await store.forget(name)
    if (json !== '{}' || results[0]?.json !== '{}') throw new Error('it does not give back what was written')
  }

  /** At once: what is under way fails. */
  close(): void {
    this.client.disconnect()
  }

  /** On each node, so that results come in their order from the first one on; on a single server the first probe does it. */
  async #loadScripts(): Promise<void> {
    if (!('nodes' in this.client)) return
    const load = (node: Redis) => Promise.all(allScripts.map(({ lua }) => node.script('LOAD', lua)))
    await Promise.all(this.client.nodes('master').map(load))
  }

  #storeUnder(keyPrefix: string): ResultStore {
    const { connections, commandTimeoutMs } = this.settings
    return connections.isCluster
      ? new ClusterStore(this.client, keyPrefix, commandTimeoutMs)
      : new SingleStore(this.client, keyPrefix)
  }
}
