import { RedisLink, RedisUnreachableError } from '../../cache/redis/redis-link.js'
import type { PipelineConfig } from '../../config/pipeline.js'
import { redactUrl } from '../../config/redact.js'
import { redisTitle, type RedisConfig } from '../../config/redis.js'
import { atMost } from '../../lifecycle/delay.js'
import { silentLog } from '../../lifecycle/log.js'
import { redisAdvice } from '../../lifecycle/redis-advice.js'
import { RedisConnections } from '../../lifecycle/redis-client.js'
import type { Finding } from '../findings.js'

const limitMs = 3_000
/** In a cluster keys fall on one of several masters; this many leave none of three out but once in 10,000 times. */
const probesOfCluster = 24

/** Writes, reads and deletes a key as the service does, in each Redis of the settings. */
export async function checkRedis(
  { cache, models }: Pick<PipelineConfig, 'cache' | 'models'>,
  network: boolean,
): Promise<Finding[]> {
  const prefix = cache.keyPrefix
  const ofModels = models.cache.redis
  const wanted = [
    ...(cache.redis === undefined ? [] : [{ redis: cache.redis, setting: 'cache.redis', prefix }]),
    ...(ofModels === undefined
      ? []
      : [{ redis: ofModels, setting: 'models.cache.redis', prefix: 'gantry:response:' }]),
  ]
  return Promise.all(wanted.map((place) => checkPlace(place, network)))
}

async function checkPlace(
  { redis, setting, prefix }: Readonly<{ redis: RedisConfig; setting: string; prefix: string }>,
  network: boolean,
): Promise<Finding> {
  const title = redisTitle(redis, redactUrl)
  const subject = setting === 'cache.redis' ? `redis ${title}` : `redis ${title} (${setting})`
  if (!network) return { subject, state: 'skipped', detail: 'offline' }
  const connections = new RedisConnections(redis, setting, silentLog())
  const settings = { connections, setting, keyPrefix: prefix, commandTimeoutMs: limitMs, openMs: limitMs }
  const failed = (detail: string, fix: string): Finding => ({ subject, state: 'failed', detail, fix })
  let link: RedisLink | undefined
  try {
    link = await RedisLink.open(settings)
    const probed = await atMost(limitMs, probe(link, connections.isCluster))
    if (probed === undefined)
      return failed(`no answer within ${limitMs} ms`, `start Redis, or correct ${setting}`)
    return { subject, state: 'ok', detail: 'answers, and takes writes' }
  } catch (error) {
    if (error instanceof RedisUnreachableError) return failed(error.advice.reason, error.advice.fix)
    const { reason, fix } = redisAdvice(error, undefined, setting)
    return failed(reason, fix)
  } finally {
    link?.close()
  }
}

async function probe(link: RedisLink, isCluster: boolean): Promise<true> {
  for (let times = 0; times < (isCluster ? probesOfCluster : 1); times += 1) await link.probe()
  return true
}
