import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { text } from 'node:stream/consumers'
import type { ServerTrust } from './server-socket.js'

export type ServerQuestion = Readonly<{
  method: string
  /** Sent as JSON; undefined: without a body. */
  body?: unknown
  token: string | undefined
  trust: ServerTrust
  signal?: AbortSignal
}>

export type ServerSaid = Readonly<{ status: number; text: string }>

/**
 * Asks a server once, on a connection of its own. `fetch` takes no certificates.
 *
 * @throws the error of the socket as Node gives it; the reason of the signal
 */
export async function askServer(
  url: string,
  { method, body, token, trust, signal }: ServerQuestion,
): Promise<ServerSaid> {
  const sent = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
  const headers = {
    ...(sent && { 'content-type': 'application/json', 'content-length': sent.length }),
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  }
  const request = url.startsWith('https:') ? requestHttps : requestHttp
  return new Promise((resolve, reject) => {
    const failed = (error: Error) => reject(signal?.aborted === true ? (signal.reason as Error) : error)
    const asked = request(url, { agent: false, ...trust, method, headers, ...(signal && { signal }) })
    asked.once('response', (answer) => {
      text(answer).then((said) => resolve({ status: answer.statusCode ?? 0, text: said }), failed)
    })
    asked.on('error', failed)
    asked.end(sent)
  })
}

/** What an error of a socket says: where a name has several addresses, the errors are inside and the message is empty. */
export function reasonOfSocket(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOfSocket).join('; ')
  return error instanceof Error ? error.message : String(error)
}
