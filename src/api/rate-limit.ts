import type { FastifyReply, FastifyRequest } from 'fastify'
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible'
import { RateLimitedError } from './errors.js'

const windowSeconds = 60

/**
 * Refuses an address that asks `/api/` more often than this, before its token is looked at. Probes, metrics, the page and the model
 * server, which has queues of its own, are not counted; wrong tokens are, wherever they are tried ({@link TokenGuesses}).
 *
 * @param perMinute - 0 sets no limit.
 * @param isFree - requests that are not counted.
 */
export function rateLimit(
  perMinute: number,
  isFree: (request: FastifyRequest) => boolean,
): (request: FastifyRequest, reply: FastifyReply) => Promise<void> {
  if (perMinute === 0) return () => Promise.resolve()
  const limiter = new RateLimiterMemory({ points: perMinute, duration: windowSeconds })
  return async (request) => {
    if (!request.url.startsWith('/api/') || isFree(request)) return
    try {
      await limiter.consume(request.ip)
    } catch (refused) {
      const { msBeforeNext } = refused as RateLimiterRes
      throw new RateLimitedError(perMinute, Math.ceil(msBeforeNext / 1_000))
    }
  }
}
