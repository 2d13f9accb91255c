import { once } from 'node:events'
import { copyFileSync } from 'node:fs'
import { createServer as createPlainServer, type RequestListener, type Server } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { PeerClient } from '../../src/cluster/peer-client.js'
import { freePort } from '../support/free-port.js'
import { silentLog } from '../support/silent-log.js'
import { TestAuthority } from '../support/test-authority.js'

const question = { method: 'GET', path: '/api/v1/cameras' } as const
const json = { 'content-type': 'application/json' }

describe('asking another node', () => {
  const ends: (() => unknown)[] = []
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end()
  })

  async function listen(server: Server, scheme: string): Promise<string> {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    ends.push(() => {
      server.close()
      server.closeAllConnections()
    })
    return `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  const plain = (answer: RequestListener) => listen(createPlainServer(answer), 'http')

  function client(token?: string, tls?: ConstructorParameters<typeof PeerClient>[1]): PeerClient {
    const made = new PeerClient(token, tls, silentLog())
    ends.push(() => made.close())
    return made
  }

  it('sends the token and says that it is a node, and gives back what comes', async () => {
    let asked: unknown
    const url = await plain((request, response) => {
      asked = [request.method, request.url, request.headers.authorization, request.headers['gantry-scope']]
      response.writeHead(200, json).end('{"items":[]}')
    })
    const answer = await client('token').ask(url, question)
    expect(answer.bytes.toString()).toBe('{"items":[]}')
    expect(answer.headers('content-type')).toBe('application/json')
    expect(asked).toEqual(['GET', '/api/v1/cameras', 'Bearer token', 'node'])
  })

  it('tells what the other node says is wrong as it says it, with the field', async () => {
    const problem = {
      ...{ code: 'GANTRY_CAMERA_URL', detail: 'no such file', hint: 'Look.', status: 400 },
      problems: [{ path: 'url', message: 'no such file' }],
    }
    const url = await plain((_, response) => response.writeHead(400, json).end(JSON.stringify(problem)))
    await expect(client().ask(url, question)).rejects.toMatchObject({
      ...{ code: 'GANTRY_CAMERA_URL', message: 'no such file', hint: 'Look.', field: 'url' },
    })
  })

  it.each([
    [401, '{}', /server\.token must be the same on all nodes/],
    [403, '{}', /server\.allowedHosts/],
    [502, '<html>bad gateway</html>', /status 502/],
    [404, '{"code":"OTHER","detail":"x","hint":"y"}', /status 404/],
  ])('S40: says what status %i means where no node of ours says more', async (status, body, told) => {
    const url = await plain((_, response) => response.writeHead(status, json).end(body))
    await expect(client().ask(url, question)).rejects.toMatchObject({
      code: 'GANTRY_CLUSTER_UNAVAILABLE',
      message: expect.stringMatching(told) as string,
      retryable: true,
    })
  })

  it('gives up where nobody listens, and where nobody answers', async () => {
    const free = `http://127.0.0.1:${await freePort()}`
    await expect(client().ask(free, question)).rejects.toThrow(/ECONNREFUSED/)
    const silent = await plain(() => undefined)
    await expect(client().ask(silent, { ...question, withinMs: 100 })).rejects.toMatchObject({
      code: 'GANTRY_CLUSTER_UNAVAILABLE',
    })
  })

  it('trusts by cluster.tls, names it where it does not, and follows a new file', async () => {
    const [authority, other] = [new TestAuthority(), new TestAuthority('another')]
    ends.push(() => [authority, other].forEach((each) => each.remove()))
    const { cert, key } = authority.issue('node')
    const server = createServer({ cert: authority.text(cert), key: authority.text(key) }, (_, response) => {
      response.writeHead(200, json).end('{}')
    })
    const url = await listen(server, 'https')
    await expect(client().ask(url, question)).rejects.toThrow(/set cluster\.tls\.ca/)
    const ca = `${authority.folder}/trusted.pem`
    copyFileSync(other.ca, ca)
    const changing = client(undefined, { ca })
    await expect(changing.ask(url, question)).rejects.toThrow(/set cluster\.tls\.ca/)
    copyFileSync(authority.ca, ca)
    expect((await changing.ask(url, question)).bytes.toString()).toBe('{}')
  })
})
