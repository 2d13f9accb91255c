import { Redis } from 'ioredis'
import { redactUrl } from '../../config/redact.js'
import { atMost } from '../../lifecycle/delay.js'
import type { Finding } from '../findings.js'

const limitMs = 3_000

/** One PING, with the login of the URL. */
export async function checkRedis(url: string, network: boolean): Promise<Finding[]> {
  const subject = `redis ${redactUrl(url)}`
  if (!network) return [{ subject, state: 'skipped', detail: 'offline' }]
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: limitMs,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    enableOfflineQueue: false,
  })
  let reason = ''
  redis.on('error', (error: Error) => (reason = error.message))
  try {
    const answer = await atMost(
      limitMs,
      redis.connect().then(() => redis.ping()),
    )
    if (answer === 'PONG') return [{ subject, state: 'ok', detail: 'answers' }]
    return failed(subject, `no answer within ${limitMs} ms`)
  } catch (error) {
    return failed(subject, reason || (error instanceof Error ? error.message : String(error)))
  } finally {
    redis.disconnect()
  }
}

function failed(subject: string, detail: string): Finding[] {
  const fix = 'start Redis, correct cache.redis, or leave it out: results are then kept in memory'
  return [{ subject, state: 'failed', detail, fix }]
}
