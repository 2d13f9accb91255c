import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Log } from '../lifecycle/log.js'
import { carriedToken } from './access.js'
import { peerOf } from './peer.js'

const reading: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Paths at which something is changed that outlives the request. Pictures and tensors are data, and have metrics. */
const changing = [
  /^\/api\/(?!.*\/frames$)/,
  /^\/v2\/repository\/models\/[^/]+\/(?:load|unload)$/,
  /^\/v2\/(?:models\/[^/]+\/)?trace\/setting$/,
  /^\/v2\/logging$/,
  /^\/v2\/(?:system|cuda)sharedmemory\/(?:.+\/)?(?:register|unregister)$/,
]

/** Of what is sent, names alone are told: values may be nobody's business. */
const mostFields = 50

/**
 * Writes a line for each request that changed something: who (the subject of a certificate, else whether by the token), what, from where.
 * To be called when it is answered. One that another process of ours relayed has no address here, and is told there.
 */
export function logChange(log: Log, request: FastifyRequest, reply: FastifyReply): void {
  const { method, url, ip, headers, body, raw } = request
  const path = url.split('?')[0] ?? ''
  // What a camera would give is looked at, and nothing is kept.
  if (method === 'POST' && path.endsWith('/cameras/preview')) return
  if (reading.has(method) || reply.statusCode >= 400 || !changing.some((paths) => paths.test(path))) return
  // Of a Unix socket, whatever its type says.
  if ((ip as string | undefined) === undefined) return
  const fields = typeof body === 'object' && body !== null ? Object.keys(body).slice(0, mostFields) : []
  log.info(
    {
      from: ip,
      by: peerOf(raw.socket)?.subject ?? (carriedToken(headers) === undefined ? 'nobody known' : 'token'),
      method,
      path,
      ...(fields.length > 0 && { fields }),
      status: reply.statusCode,
    },
    'changed by request',
  )
}
