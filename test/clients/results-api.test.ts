import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  connect,
  type Fetch,
  GantryApi,
  GantryClientError,
  type Result,
} from '../../clients/typescript/src/node.js'
import { pythonClients } from '../support/python-clients.js'
import { startHttpServer } from '../support/http-server.js'
import { RedService } from '../support/red-service.js'
import { until } from '../support/until.js'

const token = 'a-token-of-the-test'
let red: RedService
beforeAll(async () => {
  red = await RedService.start({ server: { token } })
  const { url } = red.service
  await until('thirty results', async () => (await taken(new GantryApi({ url, token }), 30)).length >= 30)
}, 90_000)
afterAll(() => red?.[Symbol.asyncDispose]())

/** The newest results, in pages of seven. */
async function taken(api: GantryApi, most: number): Promise<readonly Result[]> {
  const results: Result[] = []
  for await (const result of api.results({ camera: 'yard', pageSize: 7 })) {
    results.push(result)
    if (results.length === most) break
  }
  return results
}

describe('results by HTTP', () => {
  const api = () => new GantryApi({ url: red.service.url, token: () => token })

  it('are the newest first, over all pages', async () => {
    const seqs = (await taken(api(), 30)).map(({ seq }) => seq)
    expect(seqs).toEqual(seqs.map((_, index) => (seqs[0] ?? 0) - index))
    expect((await api().latest('yard')).seq).toBeGreaterThanOrEqual(seqs[0] ?? 0)
    expect((await api().cameras()).map(({ id, status }) => [id, status.state])).toEqual([['yard', 'live']])
  })

  it.each([
    ['another camera', () => api().latest('gate'), 'GANTRY_CAMERA_NOT_FOUND', 404],
    ['no token', () => new GantryApi({ url: red.service.url }).cameras(), 'GANTRY_UNAUTHORIZED', 401],
    [
      'nobody',
      () => new GantryApi({ url: 'http://127.0.0.1:9' }).cameras(),
      'GANTRY_CLIENT_UNREACHABLE',
      undefined,
    ],
  ])('R121: say what is wrong: %s', async (_, ask, code, status) => {
    const error = await ask().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(GantryClientError)
    expect(error).toMatchObject({ code, status, hint: expect.stringMatching(/\w/) as string })
  })

  it('R121: are given up where the answer does not come, and say what the function of the token fails with', async () => {
    const hangs: Fetch = (_, init) =>
      new Promise((_resolve, reject) => {
        const { signal } = init as unknown as { signal: AbortSignal }
        signal.addEventListener('abort', () => reject(new Error('aborted')))
        signal.dispatchEvent(new Event('abort'))
      })
    await expect(new GantryApi({ url: red.service.url }, { fetch: hangs }).cameras()).rejects.toMatchObject({
      code: 'GANTRY_CLIENT_UNREACHABLE',
      retryable: true,
    })
    const failing = () => {
      throw new Error('no such file')
    }
    await expect(new GantryApi({ url: red.service.url, token: failing }).cameras()).rejects.toMatchObject({
      code: 'GANTRY_CLIENT_OPTION',
      message: 'token: the function fails: no such file',
    })
  })

  it.each(['', '127.0.0.1:8000', 'ftp://h/', 'http://', 'http://a:b@h/'])('R121: %j is no address', (url) => {
    expect(() => new GantryApi({ url })).toThrow(/^url: /)
  })

  it.skipIf(pythonClients === undefined)('are the same in Python', async () => {
    const program = `
import asyncio, json, sys
from gantry_client import GantryApi, GantryClientError
url, token = sys.argv[1:]
async def main():
    api = GantryApi(url, token=token)
    seqs = []
    async for result in api.results(camera="yard", page_size=7):
        seqs.append(result["seq"])
        if len(seqs) == 30:
            break
    said = []
    for ask in [lambda: api.latest("gate"), lambda: GantryApi(url).cameras(), lambda: GantryApi("http://127.0.0.1:9").cameras()]:
        try:
            await ask()
        except GantryClientError as error:
            said.append([error.code, error.status])
    for address in ["", "127.0.0.1:8000", "ftp://h/", "http://", "http://a:b@h/", "http://h:x/"]:
        try:
            GantryApi(address)
        except GantryClientError as error:
            said.append(error.code)
    print(json.dumps({"seqs": seqs, "said": said, "latest": (await api.latest("yard"))["seq"]}))
asyncio.run(main())
`
    const env = { ...process.env, PYTHONPATH: join(import.meta.dirname, '../../clients/python/src') }
    const args = ['-c', program, red.service.url, token]
    const { stdout } = await promisify(execFile)(pythonClients ?? '', args, { env })
    const { seqs, said, latest } = JSON.parse(stdout) as { seqs: number[]; said: unknown[]; latest: number }
    expect(seqs).toEqual(Array.from({ length: 30 }, (_, index) => (seqs[0] ?? 0) - index))
    expect(latest).toBeGreaterThanOrEqual(seqs[0] ?? 0)
    expect(said).toEqual([
      ['GANTRY_CAMERA_NOT_FOUND', 404],
      ['GANTRY_UNAUTHORIZED', 401],
      ['GANTRY_CLIENT_UNREACHABLE', null],
      ...Array.from({ length: 6 }, () => 'GANTRY_CLIENT_OPTION'),
    ])
  })
})

describe('results of a cluster that lacks a node', () => {
  const page = (last: boolean) => ({
    items: [],
    ...(last ? {} : { nextCursor: 'next', incomplete: ['b: it does not answer'] }),
  })
  const answering = () =>
    startHttpServer(({ url = '' }, response) => {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(page(url.includes('cursor=next'))))
    })

  it('R175: say which, once for each page', async () => {
    const server = await answering()
    const told: unknown[] = []
    const api = new GantryApi({ url: server.base })
    for await (const result of api.results({ onIncomplete: (nodes) => told.push(nodes) })) told.push(result)
    await server.close()
    expect(told).toEqual([['b: it does not answer']])
  })

  it.skipIf(pythonClients === undefined)('R175: say it in Python, too', async () => {
    const server = await answering()
    const program = `
import asyncio, json, sys
from gantry_client import GantryApi
async def main():
    told = []
    async for result in GantryApi(sys.argv[1]).results(on_incomplete=told.append):
        told.append(result)
    print(json.dumps(told))
asyncio.run(main())
`
    const env = { ...process.env, PYTHONPATH: join(import.meta.dirname, '../../clients/python/src') }
    const { stdout } = await promisify(execFile)(pythonClients ?? '', ['-c', program, server.base], { env })
    await server.close()
    expect(JSON.parse(stdout)).toEqual([['b: it does not answer']])
  })
})

it('R121: a stream outlasts a function of its token that fails, and asks it again', async () => {
  let asked = 0
  const errors = new Set<string>()
  const stream = connect({
    url: red.service.url,
    token: () => {
      asked += 1
      if (asked < 3) throw new Error('no such file')
      return token
    },
    onState: ({ error }) => void (error !== undefined && errors.add(error.message)),
  })
  for await (const message of stream) if (message.type === 'detections') break
  expect(asked).toBe(3)
  expect([...errors]).toEqual(['token: the function fails: no such file'])
})
