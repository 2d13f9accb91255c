import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { describe, expect, it } from 'vitest'
import type { z } from 'zod'
import { pipelineJsonSchema } from '../../src/config/pipeline-json-schema.js'
import { pipelineSchema } from '../../src/config/pipeline.js'
import { asyncApiDocument } from '../../src/messages/asyncapi.js'
import { detectionsMessageSchema } from '../../src/messages/detections-message.js'
import { messageSchemas } from '../../src/messages/json-schemas.js'
import { clientMessageSchema, serverMessageSchema } from '../../src/messages/stream-protocol.js'
import { detectionsMessage } from '../support/detections.js'
import { breakingChanges, type Direction, type SchemaNode } from './schema-changes.js'

const read = async (path: string): Promise<unknown> =>
  JSON.parse(await readFile(join('schemas', path), 'utf8'))

function validator(schema: unknown): (value: unknown) => string {
  const ajv = new Ajv2020({ allErrors: true, strict: false })
  formats.default(ajv)
  const check = ajv.compile(schema as object)
  return (value) => (check(value) ? '' : ajv.errorsText(check.errors))
}

describe('schemas/', () => {
  const documents = {
    ...messageSchemas(),
    'asyncapi.json': asyncApiDocument(),
    'pipeline.schema.json': pipelineJsonSchema(),
  }

  it.each(Object.entries(documents))('%s is what the code says', async (name, document) => {
    expect(await read(name), 'run "npm run schemas" and commit').toEqual(JSON.parse(JSON.stringify(document)))
  })

  it('has no file nobody makes', async () => {
    const files = (await readdir('schemas')).filter((name) => name.endsWith('.json'))
    expect(files.sort()).toEqual([...Object.keys(documents), 'openapi.json'].sort())
  })
})

describe('schemas/gantry.detections.v1.json', () => {
  it('takes what the service sends, and a field a later version may add', async () => {
    const check = validator(await read('gantry.detections.v1.json'))
    expect(check(detectionsMessage())).toBe('')
    expect(check({ ...detectionsMessage(), shift: 'night' })).toBe('')
  })

  it.each([
    ['no camera', { cameraId: undefined }],
    ['a score above 1', { detections: [{ label: 'x', score: 1.1, boxPx: { x1: 0, y1: 0, x2: 1, y2: 1 } }] }],
    ['a time that is none', { capturedAt: 'yesterday' }],
  ])('refuses %s', async (_, change) => {
    const check = validator(await read('gantry.detections.v1.json'))
    expect(check(JSON.parse(JSON.stringify({ ...detectionsMessage(), ...change })))).not.toBe('')
  })
})

describe('schemas/pipeline.schema.json', () => {
  it('agrees with the check of the service on what is wrong', async () => {
    const check = validator(await read('pipeline.schema.json'))
    const camera = { id: 'dock-1', url: 'rtsp://127.0.0.1/1' }
    const files = [
      { apiVersion: 'gantry/v1', cameras: [camera] },
      { apiVersion: 'gantry/v1', sinks: { kafka: { brokers: ['127.0.0.1:9092'] } } },
      { apiVersion: 'gantry/v2' },
      { apiVersion: 'gantry/v1', camera: [] },
      { apiVersion: 'gantry/v1', cameras: [{ ...camera, sampleFps: 'many' }] },
      { apiVersion: 'gantry/v1', sinks: { kafka: { brokers: ['nowhere'] } } },
    ]
    const verdicts = files.map((file) => check(file) === '')
    expect(verdicts).toEqual([true, true, false, false, false, false])
    expect(files.map((file) => pipelineSchema.safeParse(file).success)).toEqual(verdicts)
  })
})

describe('schemas/asyncapi.json', () => {
  it('refers to nothing that is not there', async () => {
    const document = await read('asyncapi.json')
    const references: string[] = []
    JSON.stringify(document, (key, value: unknown) => {
      if (key === '$ref') references.push(String(value))
      return value
    })
    expect(references.length).toBeGreaterThan(10)
    for (const reference of references) {
      const target = reference
        .slice(2)
        .split('/')
        .reduce((at: unknown, key) => (at as Record<string, unknown> | undefined)?.[key], document)
      expect(target, reference).toBeDefined()
    }
  })
})

const contracts: { name: string; released: string; now: string; schema: z.ZodType; direction: Direction }[] =
  [
    {
      name: 'Kafka value',
      released: 'gantry.detections.v1/',
      now: 'gantry.detections.v1.json',
      schema: detectionsMessageSchema,
      direction: 'sent',
    },
    {
      name: 'stream, from the server',
      released: 'gantry.v1/',
      now: 'stream.server-message.v1.json',
      schema: serverMessageSchema,
      direction: 'sent',
    },
    {
      name: 'stream, from a client',
      released: 'gantry.v1/',
      now: 'stream.client-message.v1.json',
      schema: clientMessageSchema,
      direction: 'read',
    },
  ]

describe.each(contracts)('released versions of: $name', ({ released, now, schema, direction }) => {
  const kind = /(server|client)-message/.exec(now)?.[0]
  const files = async (ending: string) => {
    const infix = kind === undefined ? '' : `${kind}.`
    const names = await readdir(join('schemas/released', released))
    return names
      .filter((name) => name.endsWith(`${infix}${ending}.json`))
      .map((name) => `released/${released}${name}`)
  }

  it('stay readable: every sample passes the check of today and its own schema', async () => {
    const samples = await files('samples')
    expect(samples.length).toBeGreaterThan(0)
    for (const path of samples) {
      const own = validator(await read(path.replace('samples', 'schema')))
      for (const sample of (await read(path)) as unknown[]) {
        expect(schema.safeParse(sample).error, path).toBeUndefined()
        expect(own(sample), path).toBe('')
      }
    }
  })

  it('are understood across versions: by earlier readers, or from earlier senders', async () => {
    const [schemas, samples] = [(await files('schema')).sort(), (await files('samples')).sort()]
    expect(samples).toHaveLength(schemas.length)
    for (const [version, path] of schemas.entries()) {
      const check = validator(await read(path))
      const others = direction === 'sent' ? samples.slice(version) : samples.slice(0, version + 1)
      for (const other of others)
        for (const sample of (await read(other)) as unknown[])
          expect(check(sample), `${other} by ${path}`).toBe('')
    }
  })

  it('are changed by additions only', async () => {
    const today = (await read(now)) as SchemaNode
    const schemas = await files('schema')
    expect(schemas.length).toBeGreaterThan(0)
    for (const path of schemas)
      expect(breakingChanges((await read(path)) as SchemaNode, today, direction), path).toEqual([])
  })

  it('would show a removed field, a changed type and a narrowed choice', async () => {
    const today = JSON.stringify(await read(now))
    const changed = [
      today.replaceAll('"cameraId"', '"camera"').replaceAll('"cameras"', '"cams"'),
      today.replaceAll('"type":"string"', '"type":"number"'),
      today
        .replaceAll('"type":"boolean"', '"type":"string"')
        .replaceAll('"type":"integer"', '"type":"string"'),
    ]
    for (const text of changed) {
      expect(text).not.toBe(today)
      const newer = JSON.parse(text) as SchemaNode
      expect(breakingChanges(JSON.parse(today) as SchemaNode, newer, direction)).not.toEqual([])
    }
  })
})

describe('breakingChanges', () => {
  const object = (properties: SchemaNode['properties'], required: string[] = []): SchemaNode => ({
    type: 'object',
    properties: properties ?? {},
    required,
  })
  const text = { type: 'string' }

  it.each<[string, SchemaNode, SchemaNode, Direction, number]>([
    ['a new field is an addition', object({ a: text }), object({ a: text, b: text }, ['b']), 'sent', 0],
    [
      'a field that is not always sent breaks readers',
      object({ a: text }, ['a']),
      object({ a: text }),
      'sent',
      1,
    ],
    [
      'a field that becomes required breaks senders',
      object({ a: text }),
      object({ a: text }, ['a']),
      'read',
      1,
    ],
    ['a new value sent breaks readers', { enum: ['a'] }, { enum: ['a', 'b'] }, 'sent', 1],
    ['a new value taken is an addition', { enum: ['a'] }, { enum: ['a', 'b'] }, 'read', 0],
    ['a value no longer taken breaks senders', { enum: ['a', 'b'] }, { enum: ['a'] }, 'read', 1],
    [
      'a changed element breaks',
      { type: 'array', items: text },
      { type: 'array', items: { type: 'number' } },
      'sent',
      1,
    ],
  ])('%s', (_, older, newer, direction, breaks) => {
    expect(breakingChanges(older, newer, direction)).toHaveLength(breaks)
  })
})
