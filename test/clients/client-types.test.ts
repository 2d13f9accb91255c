import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, expectTypeOf, it } from 'vitest'
import type { z } from 'zod'
import type {
  Camera,
  PictureHeader,
  Result,
  ServerMessage,
  Wants,
} from '../../clients/typescript/src/index.js'
import type { cameraViewSchema } from '../../src/api/camera-schemas.js'
import type { DetectionsMessage } from '../../src/messages/detections-message.js'
import type {
  PictureHeader as SentPictureHeader,
  ServerMessage as SentMessage,
  Subscription,
} from '../../src/messages/stream-protocol.js'
import { pythonClients } from '../support/python-clients.js'

type Plain<T> = T extends readonly (infer Item)[]
  ? readonly Plain<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: Plain<T[Key]> }
    : T

// The compiler is who looks, in `npm run types`.
it('has the types in TypeScript of what the service sends and takes', () => {
  expectTypeOf<Plain<ServerMessage>>().toEqualTypeOf<Plain<SentMessage>>()
  expectTypeOf<Plain<Result>>().toEqualTypeOf<Plain<DetectionsMessage>>()
  expectTypeOf<Plain<PictureHeader>>().toEqualTypeOf<Plain<SentPictureHeader>>()
  expectTypeOf<z.infer<typeof cameraViewSchema>>().toExtend<Camera>()
  expectTypeOf<Plain<Required<Wants>>>().toExtend<Plain<Record<keyof Wants, unknown>>>()
  expectTypeOf<keyof Wants>().toExtend<keyof Subscription>()
})

type Schema = Readonly<{
  type?: string
  const?: unknown
  enum?: readonly unknown[]
  properties?: Readonly<Record<string, Schema>>
  required?: readonly string[]
  items?: Schema
  oneOf?: readonly Schema[]
}>

/** What a schema says in the words of `shapes.py`. */
function shapeOf({ type, const: only, enum: some, properties, required = [], items }: Schema): unknown {
  if (only !== undefined) return [only]
  if (some !== undefined) return some
  if (items !== undefined) return { items: shapeOf(items) }
  if (properties === undefined) return type
  const fields = Object.entries(properties).map(([name, schema]) => [name, shapeOf(schema)])
  return { fields: Object.fromEntries(fields) as object, required: [...required].sort() }
}

describe.skipIf(pythonClients === undefined)('the package in Python', () => {
  const root = join(import.meta.dirname, '../..')
  const schema = (name: string) => JSON.parse(readFileSync(join(root, 'schemas', name), 'utf8')) as Schema
  const python = async (args: readonly string[]) => {
    const env = { ...process.env, PYTHONPATH: join(root, 'clients/python/src'), PYTHONDONTWRITEBYTECODE: '1' }
    return (await promisify(execFile)(pythonClients ?? '', args, { cwd: root, env })).stdout
  }

  it('has the types of what the service sends', async () => {
    const shapes = JSON.parse(await python(['test/clients/shapes.py'])) as Record<string, unknown>
    const sent = (type: string) =>
      schema('stream.server-message.v1.json').oneOf?.find(
        ({ properties }) => properties?.['type']?.const === type,
      )
    expect(shapes).toEqual({
      Result: shapeOf(schema('gantry.detections.v1.json')),
      DetectionsMessage: shapeOf(sent('detections') ?? {}),
      GapMessage: shapeOf(sent('gap') ?? {}),
      PictureHeader: shapeOf(schema('stream.picture-header.v1.json')),
    })
  })

  it('is typed throughout', async () => {
    const said = await python(['-m', 'mypy', '--strict', '--cache-dir', '/dev/null', 'clients/python/src'])
    expect(said).toContain('Success: no issues found')
  }, 120_000)
})
