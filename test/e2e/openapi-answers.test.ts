import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ask, type Reply } from '../support/http.js'
import { buildOnnx } from '../support/onnx-builder.js'
import { addModel, redDetector } from '../support/onnx-models.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'

type Described = Readonly<{ content?: Readonly<Record<string, unknown>> }>
type Operation = Readonly<{
  parameters?: readonly Readonly<{ name: string; in: string; example: string }>[]
  responses: Readonly<Record<string, Described | Readonly<{ $ref: string }>>>
}>
type Document = Readonly<{
  paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  components: Readonly<{
    responses: Readonly<Record<string, Described>>
    examples: Readonly<Record<string, Readonly<{ value: unknown }>>>
  }>
}>

/** The model that the examples of the document ask: two shares of the sum of four numbers. */
const classifier = buildOnnx({
  inputs: [{ name: 'images', type: 'float32', shape: ['batch', 4] }],
  outputs: [{ name: 'classes', type: 'float32', shape: ['batch', 2] }],
  constants: [
    {
      name: 'shares',
      shape: [4, 2],
      data: Float32Array.of(0.9, 0.1, 0.9, 0.1, 0.9, 0.1, 0.9, 0.1),
    },
  ],
  nodes: [{ op: 'MatMul', inputs: ['images', 'shares'], outputs: ['classes'] }],
})

/** A step of a JSON pointer. */
const pointer = (step: string) => encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1'))

describe('the answers of the service', () => {
  let service: TestService
  let document: Document
  let repository: string
  const ajv = new Ajv2020({ allErrors: true, strict: false })
  addFormats.default(ajv)

  beforeAll(async () => {
    repository = mkdtempSync(join(tmpdir(), 'gantry-test-'))
    addModel(repository, 'red', { onnx: redDetector('uint8-nhwc') })
    addModel(repository, 'classifier', { onnx: classifier })
    service = await TestService.start({
      pipeline: {
        models: { repository, control: 'explicit', load: ['classifier'] },
        modelServer: { enabled: true },
        ensemble: 'red',
        cameras: [{ id: 'gate', url: 'push:' }],
      },
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
    await until('the model', async () => (await service.fetch('/v2/models/classifier/ready')).ok, 60_000)
    await until('a result', async () => (await service.fetch('/api/v1/cameras/gate/latest')).ok)
  })
  afterAll(async () => {
    await service?.[Symbol.asyncDispose]()
    rmSync(repository, { recursive: true, force: true })
  })

  /** What is wrong with an answer by the document; empty when it is as described. */
  function faults(template: string, method: string, reply: Reply): unknown[] {
    const status = String(reply.status)
    const type = reply.headers['content-type']?.split(';')[0] ?? ''
    const answer = document.paths[template]?.[method]?.responses[status]
    if (answer === undefined) return [`${status} is not described`]
    const name = '$ref' in answer ? (answer.$ref.split('/').at(-1) ?? '') : undefined
    const described = name === undefined ? answer : document.components.responses[name]
    const content = described !== undefined && 'content' in described ? described.content : undefined
    if (content === undefined) return reply.text === '' ? [] : ['a body is not described']
    const key = Object.keys(content).find((described) => described.split(';')[0] === type)
    if (key === undefined) return [`${type} is not described for ${status}`]
    if (!type.includes('json')) return []
    const at =
      name === undefined
        ? ['paths', template, method, 'responses', status]
        : ['components', 'responses', name]
    const steps = [...at, 'content', key, 'schema']
    const check = ajv.compile({ $ref: `api#/${steps.map(pointer).join('/')}` })
    return check(reply.json) ? [] : (check.errors ?? [])
  }

  /** With its camera, and what the document gives as an example of all else. */
  function pathOf(template: string, id: string): string {
    const [operation] = Object.values(document.paths[template] ?? {})
    return (operation?.parameters ?? [])
      .filter((parameter) => parameter.in === 'path')
      .reduce((path, { name, example }) => path.replace(`{${name}}`, name === 'id' ? id : example), template)
  }
  const otherStatuses: readonly [start: string, status: number][] = [
    ['/api/v1/stream', 426],
    // It is off.
    ['/v2/systemsharedmemory', 501],
    ['/v2/cudasharedmemory', 501],
  ]

  it('are as its document says, on every path that is read', async () => {
    for (const [template, item] of Object.entries(document.paths)) {
      if (item['get'] === undefined) continue
      const response = await ask(service.url + pathOf(template, 'gate'))
      expect([template, faults(template, 'get', response)]).toEqual([template, []])
      const [, expected = 200] = otherStatuses.find(([start]) => template.startsWith(start)) ?? []
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

  it('are those of its examples, where a model is asked and loaded', async () => {
    const asks: [template: string, body: string | undefined, answer: string | undefined][] = [
      ['/v2/models/{model}/infer', 'InferRequest', 'InferResponse'],
      ['/v2/models/{model}/versions/{version}/infer', 'InferRequest', 'InferResponse'],
      ['/v2/repository/index', 'IndexRequest', undefined],
      ['/v2/repository/models/{model}/unload', 'UnloadRequest', undefined],
      ['/v2/repository/models/{model}/load', undefined, undefined],
      ['/v2/trace/setting', undefined, undefined],
      ['/v2/logging', 'LogSettings', undefined],
    ]
    const { examples } = document.components
    for (const [template, body, answer] of asks) {
      const reply = await ask(service.url + pathOf(template, ''), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: body === undefined ? '' : examples[body]?.value,
      })
      expect([template, reply.status, faults(template, 'post', reply)]).toEqual([template, 200, []])
      if (answer === undefined) continue
      const rounded = JSON.parse(reply.text, (_, value: unknown) =>
        typeof value === 'number' ? Number(value.toFixed(6)) : value,
      ) as unknown
      expect(rounded).toEqual(examples[answer]?.value)
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
