import { expect, it } from 'vitest'
import { modelListSchema } from '../../src/api/models-schema.js'
import { statusSchema } from '../../src/api/readiness-schemas.js'
import { FakeGantry } from '../support/fake-gantry.js'
import { fakeDown, fakeModel, fakeModelList } from '../support/fake-models.js'
import { serveFake } from '../support/serve-fake.js'

it('tells of all models in one answer of the published form', async () => {
  const gantry = new FakeGantry()
  gantry.modelList = fakeModelList([
    fakeModel('ppe_detect'),
    fakeModel('broken', { versions: [fakeDown('1', 'UNAVAILABLE', 'no file')] }),
  ])
  const { url } = await serveFake({}, { gantry })
  const body: unknown = await (await fetch(`${url}/api/v1/models`)).json()
  expect(modelListSchema.parse(body)).toEqual(gantry.modelList)
})

it('is for those who have the token', async () => {
  const { url } = await serveFake({ token: 'a-long-enough-token' })
  expect((await fetch(`${url}/api/v1/models`)).status).toBe(401)
})

it('names brokers and topic in the status, and nothing of a login', async () => {
  const gantry = new FakeGantry()
  gantry.sinkPlaces = {
    kafka: { brokers: ['k1:9093'], topic: 'seen', security: 'SASL_SSL', saslMechanism: 'PLAIN' },
    webhooks: [{ name: 'alarm', origin: 'https://hooks.example', signed: true, batches: false }],
    mqtt: [],
  }
  const { url } = await serveFake({}, { gantry })
  const body: unknown = await (await fetch(`${url}/api/v1/status`)).json()
  expect(statusSchema.parse(body)).toMatchObject(gantry.sinkPlaces)
})
