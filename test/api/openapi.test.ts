import { validate } from '@readme/openapi-parser'
import addFormats from 'ajv-formats'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { FastifyInstance } from 'fastify'
import { readFile } from 'node:fs/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { CodecPool } from '../../src/api/codec/codec-pool.js'
import { createKserveApp } from '../../src/api/kserve/kserve-app.js'
import { kserveRoutes } from '../../src/api/kserve/kserve-routes.js'
import { answerBodies, requestBodies } from '../../src/api/openapi-bodies.js'
import { asyncApiDocument } from '../../src/messages/asyncapi.js'
import { openApiDocument } from '../../src/api/openapi.js'
import { apiRoutes } from '../../src/api/routes/index.js'
import { FakeModelServer } from '../support/fake-model-server.js'
import { ask } from '../support/http.js'
import { silentLog } from '../support/silent-log.js'
import { serveFake } from '../support/serve-fake.js'

it('is what is published in schemas/openapi.json', async () => {
  const published: unknown = JSON.parse(await readFile('schemas/openapi.json', 'utf8'))
  expect(published, 'run "npm run schemas" and commit').toEqual(JSON.parse(JSON.stringify(openApiDocument())))
})

const described = Object.entries(openApiDocument()['paths'] as Record<string, object>).flatMap(
  ([path, item]) => Object.keys(item).map((method) => ({ method: method.toUpperCase(), path })),
)
const isOfModels = ({ path }: Readonly<{ path: string }>): boolean => /^\/v2(\/|$)/.test(path)
const asText = ({ method, path }: Readonly<{ method: string; path: string }>): string => `${method} ${path}`

it('describes every route and no other', () => {
  const others = described.filter((operation) => !isOfModels(operation))
  expect(others.map(asText).sort()).toEqual(apiRoutes.map(asText).sort())
})

describe('the operations of /v2', () => {
  it('are at every path of the model server and no other', () => {
    const paths: string[] = []
    const recording = { all: (path: string) => paths.push(path) } as unknown as FastifyInstance
    const server = new FakeModelServer({})
    kserveRoutes(recording, server, { maxBodyBytes: 1, pool: new CodecPool({ maxBytes: 1 }) })
    const templates = paths.map((path) => path.replace(/\(.*?\)/g, '').replace(/:(\w+)/g, '{$1}'))
    expect([...new Set(described.filter(isOfModels).map(({ path }) => path))].sort()).toEqual(
      templates.sort(),
    )
  })

  it('take every method that they describe and no other', async () => {
    const app = createKserveApp(new FakeModelServer({}), { maxBodyBytes: 1_000, log: silentLog() })
    onTestFinished(() => app.close())
    const methods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH'] as const
    const taken: string[] = []
    for (const path of new Set(described.filter(isOfModels).map((operation) => operation.path)))
      for (const method of methods) {
        const url = path.replace('{version}', '1').replace(/[{}]/g, '')
        if ((await app.inject({ method, url })).statusCode !== 405) taken.push(`${method} ${path}`)
      }
    expect(taken.sort()).toEqual(described.filter(isOfModels).map(asText).sort())
  })
})

describe('examples', () => {
  const bodies = [...requestBodies, ...answerBodies].map(([schema, body]) => ({ schema, ...body }))
  it.each(bodies.filter(({ example }) => example !== undefined))(
    'are what their schema takes (body $name)',
    ({ schema, example }) => {
      expect(schema.safeParse(example).error).toBeUndefined()
    },
  )

  it('are what their schema takes (parameters)', () => {
    const ajv = new Ajv2020({ strict: false, coerceTypes: true })
    addFormats.default(ajv)
    const document = openApiDocument() as {
      paths: Record<string, Record<string, { parameters?: Parameter[] }>>
    }
    const parameters = Object.values(document.paths)
      .flatMap((item) => Object.values(item))
      .flatMap((operation) => operation.parameters ?? [])
    expect(parameters.length).toBeGreaterThan(20)
    for (const { name, schema, example } of parameters)
      expect([name, ajv.validate(schema, example), ajv.errors]).toEqual([name, true, null])
  })
})

type Parameter = Readonly<{ name: string; schema: object; example: unknown }>

it('is served', async () => {
  const { url } = await serveFake()
  expect((await ask(`${url}/openapi.json`)).json).toEqual(JSON.parse(JSON.stringify(openApiDocument())))
})

it('is a valid OpenAPI 3.1 document', async () => {
  const result = await validate(
    JSON.parse(JSON.stringify(openApiDocument())) as Parameters<typeof validate>[0],
  )
  expect(result.valid ? [] : result.errors).toEqual([])
  expect(result.warnings).toEqual([])
})

it('stands beside the description of the messages', async () => {
  const { url } = await serveFake()
  const reply = await ask(`${url}/asyncapi.json`)
  expect(reply.json).toEqual(JSON.parse(JSON.stringify(asyncApiDocument())))
})
