import { createHash, createHmac } from 'node:crypto'
import { secretKey } from '../../config/webhook.js'

/**
 * Headers by which whoever has the secret can tell that a body is ours and when it was sent.
 *
 * @param id - of the message: the same for every attempt to send the same records.
 * @param secrets - each makes a signature, so that one can be replaced by another; none: the headers are without any.
 * @param atMs - wall time.
 * @see https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
export function webhookHeaders(
  id: string,
  body: Uint8Array,
  secrets: readonly string[],
  atMs: number,
): Record<string, string> {
  const timestamp = String(Math.floor(atMs / 1000))
  const signatures = secrets.map((secret) => {
    const hmac = createHmac('sha256', secretKey(secret)).update(`${id}.${timestamp}.`).update(body)
    return `v1,${hmac.digest('base64')}`
  })
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    ...(signatures.length > 0 && { 'webhook-signature': signatures.join(' ') }),
  }
}

/**
 * Id of a message with these records. It tells messages apart by what is in them: records that failed together may be sent in other
 * company, and who leaves out ids that it has seen must not leave out others with them. Without ".", which separates what is signed.
 */
export function messageIdOf(recordIds: readonly string[]): string {
  return `msg_${createHash('sha256').update(recordIds.join('\n')).digest('base64url').slice(0, 32)}`
}
