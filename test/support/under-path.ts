import { once } from 'node:events'
import { createServer, request, type IncomingMessage } from 'node:http'
import { request as requestByTls } from 'node:https'
import { connect, type AddressInfo } from 'node:net'
import { connect as connectByTls } from 'node:tls'
import { onTestFinished } from 'vitest'

/**
 * A proxy that gives the service out under `/gantry/` alone, and takes that away before it asks; stopped when the test ends.
 *
 * @param ca - of a service that speaks TLS.
 * @returns its URL, and what came elsewhere.
 */
export async function underPath(
  serviceUrl: string,
  ca?: string,
): Promise<Readonly<{ url: string; astray: string[] }>> {
  const { hostname, port, protocol } = new URL(serviceUrl)
  const secure = protocol === 'https:'
  const place = { hostname, port, ...(ca !== undefined && { ca }) }
  const astray: string[] = []
  const pathOf = ({ url = '' }: IncomingMessage): string | undefined => {
    if (url.startsWith('/gantry/')) return url.slice('/gantry'.length)
    if (url !== '/favicon.ico') astray.push(url)
    return undefined
  }
  const proxy = createServer((asked, answer) => {
    const path = pathOf(asked)
    if (path === undefined) return void answer.writeHead(404).end()
    const { method, headers } = asked
    const inner = (secure ? requestByTls : request)({ ...place, path, method, headers }, (reply) => {
      answer.writeHead(reply.statusCode ?? 502, reply.headers)
      reply.pipe(answer)
    })
    inner.on('error', () => answer.destroy())
    asked.pipe(inner)
  })
  proxy.on('upgrade', (asked, socket, head) => {
    const path = pathOf(asked)
    if (path === undefined) return void socket.destroy()
    const to = { host: hostname, port: Number(port) }
    const inner = secure ? connectByTls({ ...to, ...(ca !== undefined && { ca }) }) : connect(to)
    inner.once(secure ? 'secureConnect' : 'connect', () => {
      const lines = asked.rawHeaders.flatMap((text, at, all) =>
        at % 2 === 0 ? [`${text}: ${all[at + 1]}`] : [],
      )
      inner.write(`GET ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
      inner.write(head)
      socket.pipe(inner).pipe(socket)
    })
    for (const end of [socket, inner])
      end.on('error', () => [socket, inner].forEach((each) => each.destroy()))
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  onTestFinished(() => {
    proxy.closeAllConnections()
    proxy.close()
  })
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/gantry/`, astray }
}
