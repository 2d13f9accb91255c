import { validate } from '@readme/openapi-parser'
import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { asyncApiDocument } from '../../src/messages/asyncapi.js'
import { openApiDocument } from '../../src/api/openapi.js'
import { apiRoutes } from '../../src/api/routes/index.js'
import { ask } from '../support/http.js'
import { serveFake } from '../support/serve-fake.js'

it('is what is published in schemas/openapi.json', async () => {
  const published: unknown = JSON.parse(await readFile('schemas/openapi.json', 'utf8'))
  expect(published, 'run "npm run schemas" and commit').toEqual(JSON.parse(JSON.stringify(openApiDocument())))
})

it('describes every route and no other', () => {
  const paths = openApiDocument()['paths'] as Record<string, Record<string, unknown>>
  const described = Object.entries(paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
  )
  expect(described.sort()).toEqual(apiRoutes.map(({ method, path }) => `${method} ${path}`).sort())
})

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
