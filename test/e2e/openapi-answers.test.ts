import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ask, type Reply } from '../support/http.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'

type Operation = Readonly<{
  responses: Readonly<Record<string, { content?: Readonly<Record<string, unknown>> }>>
}>
type Document = Readonly<{ paths: Readonly<Record<string, Readonly<Record<string, Operation>>>> }>

/** A step of a JSON pointer. */
const pointer = (step: string) => encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1'))

describe('the answers of the service', () => {
  let service: TestService
  let document: Document
  const ajv = new Ajv2020({ allErrors: true, strict: false })
  addFormats.default(ajv)

  beforeAll(async () => {
    service = await TestService.start({
      pipeline: { cameras: [{ id: 'gate', url: 'push:' }] },
      env: { GANTRY__SERVER__MAX_BODY_BYTES: '100000' },
    })
    document = await service.json<Document>('/openapi.json')
    ajv.addSchema(document, 'api')
    const jpeg = await sharp({ create: { width: 320, height: 180, channels: 3, background: 'grey' } })
      .jpeg()
      .toBuffer()
    const headers = { 'content-type': 'image/jpeg' }
    const body = new Uint8Array(jpeg)
    await until('a picture taken', async () => {
      return (await service.fetch('/api/v1/cameras/gate/frames', { method: 'POST', headers, body })).ok
    })
    await until('a result', async () => (await service.fetch('/api/v1/cameras/gate/latest')).ok)
  })
  afterAll(async () => service?.[Symbol.asyncDispose]())

  /** What is wrong with an answer by the document; empty when it is as described. */
  function faults(template: string, method: string, reply: Reply): unknown[] {
    const status = String(reply.status)
    const type = reply.headers['content-type']?.split(';')[0] ?? ''
    const described = document.paths[template]?.[method]?.responses[status]
    if (described === undefined) return [`${status} is not described`]
    const { content } = described
    if (content === undefined) return reply.text === '' ? [] : ['a body is not described']
    const key = Object.keys(content).find((described) => described.split(';')[0] === type)
    if (key === undefined) return [`${type} is not described for ${status}`]
    if (!type.includes('json')) return []
    const steps = ['paths', template, method, 'responses', status, 'content', key, 'schema']
    const check = ajv.compile({ $ref: `api#/${steps.map(pointer).join('/')}` })
    return check(reply.json) ? [] : (check.errors ?? [])
  }

  const pathOf = (template: string, id: string) => template.replace('{id}', id)

  it('are as its document says, on every path that is read', async () => {
    for (const [template, item] of Object.entries(document.paths)) {
      if (item['get'] === undefined) continue
      const response = await ask(service.url + pathOf(template, 'gate'))
      expect([template, faults(template, 'get', response)]).toEqual([template, []])
      const expected = template === '/api/v1/stream' ? 426 : 200
      expect([template, response.status]).toEqual([template, expected])
    }
  })

  it('are as its document says, where there is no such camera or none can have that id', async () => {
    for (const [template, item] of Object.entries(document.paths)) {
      if (item['get'] === undefined || !template.includes('{id}')) continue
      for (const [id, status] of [
        ['nobody', 404],
        ['%20', 400],
      ] as const) {
        const response = await ask(service.url + pathOf(template, id))
        expect([template, response.status]).toEqual([template, status])
        expect([template, id, faults(template, 'get', response)]).toEqual([template, id, []])
      }
    }
  })

  it('are as its document says, for everything that changes a camera and for what is wrong with it', async () => {
    const asks: [template: string, method: string, body: unknown, type?: string][] = [
      ['/api/v1/cameras', 'post', { id: 'new', url: 'push:' }],
      ['/api/v1/cameras', 'post', { id: 'new', url: 'push:' }],
      ['/api/v1/cameras', 'post', { id: 'new' }],
      ['/api/v1/cameras', 'post', 'x=1', 'application/x-www-form-urlencoded'],
      ['/api/v1/cameras', 'post', { id: 'big', url: 'x'.repeat(300_000) }],
      ['/api/v1/cameras/{id}', 'patch', { sampleFps: 2 }],
      ['/api/v1/cameras/{id}', 'patch', { sampleFps: 'x' }],
      ['/api/v1/cameras/{id}/frames', 'post', 'no picture', 'image/jpeg'],
      ['/api/v1/cameras/{id}/frames', 'post', 'no picture', 'text/plain'],
      ['/api/v1/cameras/{id}/frames', 'post', 'x'.repeat(200_000), 'image/jpeg'],
      ['/api/v1/cameras/{id}', 'delete', undefined],
      ['/api/v1/cameras/{id}', 'delete', undefined],
      ['/api/v1/cameras/{id}', 'patch', { sampleFps: 2 }],
      ['/api/v1/cameras/{id}/frames', 'post', 'no picture', 'image/jpeg'],
    ]
    const statuses: number[] = []
    for (const [template, method, body, type = 'application/json'] of asks) {
      const headers = { 'content-type': type }
      const given = body === undefined ? {} : { body, headers }
      const response = await ask(service.url + pathOf(template, 'new'), {
        method: method.toUpperCase(),
        ...given,
      })
      statuses.push(response.status)
      expect([template, method, faults(template, method, response)]).toEqual([template, method, []])
    }
    expect(statuses).toEqual([201, 409, 400, 415, 413, 200, 400, 400, 415, 413, 204, 404, 404, 404])
  })
})
