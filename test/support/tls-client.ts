import { type Agent, request } from 'node:https'
import { text } from 'node:stream/consumers'

/** PEM: whom a client trusts, unless it takes whatever it is shown, and the certificate that it shows. */
export type ClientTls = Readonly<{ ca: string; cert?: string; key?: string; rejectUnauthorized?: false }>

/** `fetch` that trusts a CA of the test. A body is a text or bytes. */
export async function fetchByTls(
  url: string,
  trust: ClientTls & Readonly<{ agent?: Agent; servername?: string }>,
  init: RequestInit = {},
): Promise<Response> {
  const { method = 'GET', body } = init
  const headers = Object.fromEntries(new Headers(init.headers))
  return new Promise((resolve, reject) => {
    const asked = request(url, { agent: false, ...trust, method, headers }, (answer) => {
      const { statusCode = 0, headers: told } = answer
      text(answer).then((content) => {
        const fields = Object.entries(told).flatMap(([name, value]) =>
          value === undefined ? [] : [[name, String(value)] as [string, string]],
        )
        resolve(new Response(statusCode === 204 ? null : content, { status: statusCode, headers: fields }))
      }, reject)
    })
    asked.on('error', reject)
    asked.end(body ?? undefined)
  })
}
