import { expect, it } from 'vitest'
import { ensembleSchema } from '../../src/api/ensemble-schema.js'
import { problemSchema } from '../../src/api/problem.js'
import { ask } from '../support/http.js'
import { serveFake } from '../support/serve-fake.js'

const path = '/api/v1/ensemble'

it('tells which ensemble runs, and takes another one with the defaults of its trial filled in', async () => {
  const { url, gantry } = await serveFake()
  expect(ensembleSchema.parse((await ask(url + path)).json)).toMatchObject({ name: 'ppe', state: 'steady' })
  const reply = await ask(url + path, { method: 'PUT', body: { name: 'fast', trial: { seconds: 5 } } })
  expect(reply.status).toBe(202)
  expect(ensembleSchema.parse(reply.json)).toMatchObject({ state: 'loading', to: { name: 'fast' } })
  expect(gantry.changed).toEqual({ name: 'fast', trial: { seconds: 5, minAgreement: 0.9, maxP99Ratio: 1.1 } })
})

it('says what is wrong with a request or its ensemble, each with its code', async () => {
  const { url, gantry } = await serveFake()
  const put = async (body: unknown) => {
    const { status, json } = await ask(url + path, { method: 'PUT', body })
    const { code, problems } = problemSchema.parse(json)
    return [status, code, problems.map((problem) => problem.path).join()]
  }
  expect(
    await put({ name: 'fast', trial: { seconds: 4, minAgreement: 2, maxP99Ratio: 0 }, more: 1 }),
  ).toEqual([400, 'GANTRY_BAD_REQUEST', expect.stringContaining('trial.seconds')])
  expect(await put({})).toEqual([400, 'GANTRY_BAD_REQUEST', 'name'])
  expect(await put({ name: 'broken' })).toEqual([400, 'GANTRY_MODEL_CONFIG', ''])
  expect(await put({ name: 'nowhere' })).toEqual([404, 'GANTRY_MODEL_NOT_FOUND', ''])
  expect(gantry.changed).toBeUndefined()
  await ask(url + path, { method: 'PUT', body: { name: 'fast' } })
  expect(await put({ name: 'other' })).toEqual([409, 'GANTRY_ENSEMBLE_BUSY', ''])
})

it('needs the token', async () => {
  const { url, gantry } = await serveFake({ token: 'sixteen-letters-or-more' })
  expect((await ask(url + path)).status).toBe(401)
  expect((await ask(url + path, { method: 'PUT', body: { name: 'fast' } })).status).toBe(401)
  expect(gantry.changed).toBeUndefined()
})
