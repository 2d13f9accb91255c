import type { Cluster, Redis, RedisOptions } from 'ioredis'
import type { TlsSwitch } from '../config/client-tls.js'
import type { RedisConfig, RedisSection } from '../config/redis.js'
import { ClientTls } from './client-tls.js'
import type { Log } from './log.js'

export type RedisClient = Redis | Cluster

export type RedisTiming = Readonly<{
  connectTimeoutMs: number
  commandTimeoutMs: number
}>

/** Of clients whose replies have their usual form. */
type ClientOptions = Omit<RedisOptions, 'replyMapping'>
/** A connection that is over is followed by a new client. */
const never = () => null

/** Slots move and masters fail over in that time; what takes longer is a failure of the command. */
const clusterPatience = {
  maxRedirections: 3,
  retryDelayOnFailover: 50,
  retryDelayOnClusterDown: 50,
  retryDelayOnTryAgain: 20,
} as const

/** Clients of one Redis of the settings: a server, a cluster, or the master that sentinels name. */
export class RedisConnections {
  readonly #section: RedisSection
  readonly #tls: ClientTls

  /** @param setting - where it stands in the settings: `cache.redis`. */
  constructor(config: RedisConfig, setting: string, log: Log) {
    this.#section = typeof config === 'string' ? { url: config } : config
    this.#tls = new ClientTls(tlsOf(this.#section), `${setting}.tls`, log)
  }

  /** Whether keys lie on several servers. */
  get isCluster(): boolean {
    return this.#section.nodes !== undefined
  }

  /**
   * A client that is not connected yet and keeps no commands for later, nor connects a second time. It has a listener for `error`, so that no error ends the process.
   *
   * @throws InternalError where PEM files have become unusable since the settings were read
   */
  async create({ connectTimeoutMs, commandTimeoutMs }: RedisTiming): Promise<RedisClient> {
    // Loaded where there is a Redis alone.
    const { Cluster, Redis } = await import('ioredis')
    const tls = await this.#tls.options()
    const { url, nodes, sentinels, name, username, password, sentinelUsername, sentinelPassword, database } =
      this.#section
    const common: ClientOptions = {
      enableReadyCheck: false,
      disableClientInfo: true,
      maxRetriesPerRequest: 1,
      connectTimeout: connectTimeoutMs,
      commandTimeout: commandTimeoutMs,
      ...(username !== undefined && { username }),
      ...(password !== undefined && { password }),
      ...(tls !== undefined && { tls }),
    }
    const lazy = { lazyConnect: true, enableOfflineQueue: false }
    if (nodes !== undefined) {
      const client = new Cluster(nodes.map(placeOf), {
        ...lazy,
        ...clusterPatience,
        clusterRetryStrategy: never,
        // It asks for the right to `cluster info`, and says nothing where that is not given.
        enableReadyCheck: false,
        slotsRefreshTimeout: connectTimeoutMs,
        redisOptions: common,
      })
      return heard(client)
    }
    const single: ClientOptions = { ...common, ...lazy, retryStrategy: null }
    if (sentinels === undefined) return heard(new Redis(url ?? '', single))
    return heard(
      new Redis({
        ...single,
        sentinels: sentinels.map(placeOf),
        name: name ?? '',
        db: database ?? 0,
        sentinelRetryStrategy: never,
        ...(sentinelUsername !== undefined && { sentinelUsername }),
        ...(sentinelPassword !== undefined && { sentinelPassword }),
        ...(tls !== undefined && { sentinelTLS: tls, enableTLSForSentinelMode: true }),
      }),
    )
  }
}

function tlsOf({ tls, url = '' }: RedisSection): TlsSwitch | undefined {
  return tls ?? /^rediss:/i.test(url)
}

function heard<T extends RedisClient>(client: T): T {
  client.on('error', () => undefined)
  return client
}

/** `host:port` or `[::1]:port`. */
function placeOf(place: string): { host: string; port: number } {
  const at = place.lastIndexOf(':')
  return { host: place.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(place.slice(at + 1)) }
}
