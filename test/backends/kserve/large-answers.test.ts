import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { parseModelConfig } from '../../../src/repository/model-config-text.js'
import type { LoadedModel } from '../../../src/runtime/loaded-model.js'
import { KserveBackend } from '../../../src/backends/kserve/kserve-backend.js'
import { contextOf, fp32, requestOf, scheduled } from '../../support/direct-model.js'
import { mostHeldMs } from '../../support/loop-held.js'
import { protoField } from '../../support/raw-proto.js'
import { outputField, rawField, startRemoteModels } from '../../support/remote-model.js'

const MiB = 1024 ** 2

type Wanted = Readonly<{ maxResponseBytes?: number; entry?: string; instances?: number }>

/** @returns the port of a remote server, which ends with the test */
async function startRemote(...given: Parameters<typeof startRemoteModels>): Promise<number> {
  const { port, stop } = await startRemoteModels(...given)
  onTestFinished(async () => void (await stop()))
  return port
}

async function serve(
  port: number,
  model: string,
  datatype: string,
  { maxResponseBytes = 256 * MiB, entry, instances = 1 }: Wanted = {},
): Promise<LoadedModel> {
  const config = `
    instance_group { kind: KIND_CPU count: ${instances} }
    input { name: "x" data_type: TYPE_FP32 dims: [ 1 ] }
    output { name: "y" data_type: TYPE_${datatype} dims: [ -1 ] }
    parameters { key: "gantry.kserve_addresses" value { string_value: "127.0.0.1:${port}" } }
    parameters { key: "gantry.kserve_model" value { string_value: "${model}" } }
    parameters { key: "gantry.kserve_timeout_ms" value { string_value: "60000" } }`
  const context = contextOf('local', parseModelConfig(config, 'config.pbtxt'))
  const loaded = await scheduled(await new KserveBackend(maxResponseBytes, entry).open(context), context)
  onTestFinished(() => loaded.stop(5_000))
  return loaded
}

const x = requestOf([fp32('x', [1], [1])])

/** Packed elements of one kind, `count` times the same. */
function repeated(field: number, element: Uint8Array, count: number): Buffer {
  return protoField(field, Buffer.alloc(element.byteLength * count, element))
}

const half = Buffer.from(Float32Array.of(0.5).buffer)
const kinds: readonly (readonly [string, string, () => Buffer, number])[] = [
  [
    '15,000,000 typed numbers',
    'FP32',
    () => outputField('FP32', [15_000_000], repeated(6, half, 15_000_000)),
    60_000_000,
  ],
  [
    '15,000,000 typed whole numbers',
    'INT64',
    () => outputField('INT64', [15_000_000], repeated(3, Buffer.of(7), 15_000_000)),
    120_000_000,
  ],
  [
    '5,000,000 typed texts',
    'STRING',
    () => {
      const text = protoField(8, 'A')
      return outputField('BYTES', [5_000_000], Buffer.alloc(text.byteLength * 5_000_000, text))
    },
    25_000_000,
  ],
  [
    '200 MiB raw',
    'UINT8',
    () => Buffer.concat([outputField('UINT8', [200 * MiB]), rawField(Buffer.alloc(200 * MiB, 7))]),
    200 * MiB,
  ],
]

it.each(kinds)(
  'S12: %s of another server do not hold the loop',
  { timeout: 60_000 },
  async (_, type, answer, bytes) => {
    const port = await startRemote({ large: answer() })
    const model = await serve(port, 'large', type)
    const { result, heldMs } = await mostHeldMs(() => model.infer(x))
    expect(result[0]?.data.byteLength).toBe(bytes)
    expect(heldMs).toBeLessThan(100)
  },
)

it.each<readonly [string, string, () => Buffer, Readonly<Record<string, unknown>>]>([
  [
    'raw',
    'UINT8',
    () => Buffer.concat([outputField('UINT8', [3 * MiB]), rawField(Buffer.alloc(3 * MiB))]),
    {},
  ],
  [
    'compressed',
    'UINT8',
    () => Buffer.concat([outputField('UINT8', [3 * MiB]), rawField(Buffer.alloc(3 * MiB))]),
    { 'grpc.default_compression_algorithm': 2 },
  ],
  [
    'within a message that is not: whole numbers of one byte',
    'INT64',
    () => outputField('INT64', [300_000], repeated(3, Buffer.of(7), 300_000)),
    {},
  ],
  [
    'raw, beyond it by a byte',
    'UINT8',
    () => Buffer.concat([outputField('UINT8', [MiB + 1]), rawField(Buffer.alloc(MiB + 1))]),
    {},
  ],
])('S12: refuses outputs of another server beyond the limit: %s', async (_, type, answer, options) => {
  const port = await startRemote({ large: answer() }, options)
  const model = await serve(port, 'large', type, { maxResponseBytes: MiB })
  await expect(model.infer(x)).rejects.toMatchObject({
    status: 'INVALID_ARG',
    message: expect.stringMatching(
      /^outputs of model 'local' have (\d+ bytes, )?more than the 1048576 of a response \(modelServer\.maxResponseBytes\): remote model 'large'/,
    ) as string,
  })
})

it.each<readonly [string, string, Buffer, string]>([
  [
    'too few bytes',
    'FP32',
    Buffer.concat([outputField('FP32', [2]), rawField(Buffer.alloc(4))]),
    "'y' has 4 bytes, which are no FP32 [2]",
  ],
  [
    'a text that is cut short',
    'STRING',
    Buffer.concat([outputField('BYTES', [1]), rawField(Buffer.of(9, 0, 0, 0, 65))]),
    "'y' has 5 bytes, which are no BYTES [1]",
  ],
  ['a type that is none', 'FP32', outputField('FP33', [1]), "'y' has datatype 'FP33'"],
  ['a type that cannot be listed', 'FP16', outputField('FP16', [1]), "'FP16' has no raw contents"],
  [
    'a list that is cut short',
    'INT32',
    outputField('INT32', [1], protoField(2, Buffer.of(0x80))),
    'Response message parsing error',
  ],
  [
    '10,000 outputs',
    'FP32',
    Buffer.concat(Array.from({ length: 10_000 }, () => outputField('FP32', []))),
    'more than 4096 outputs',
  ],
])('refuses an answer of another server with %s', async (_, type, answer, problem) => {
  const port = await startRemote({ wrong: answer })
  const model = await serve(port, 'wrong', type)
  await expect(model.infer(x)).rejects.toMatchObject({
    status: 'INTERNAL',
    message: expect.stringContaining(problem) as string,
  })
})

/** The values -1, 0 and the largest, as varints of protobuf. */
const minusOne = Buffer.from([255, 255, 255, 255, 255, 255, 255, 255, 255, 1])
it.each<readonly [string, Buffer, readonly number[]]>([
  ['BOOL', protoField(1, Buffer.of(1, 0)), [1, 0]],
  ['INT8', protoField(2, Buffer.concat([minusOne, Buffer.of(5)])), [255, 5]],
  ['INT16', protoField(2, Buffer.concat([minusOne, Buffer.of(5)])), [255, 255, 5, 0]],
  ['INT32', protoField(2, Buffer.concat([minusOne, Buffer.of(5)])), [255, 255, 255, 255, 5, 0, 0, 0]],
  // Exact past 2^53: 2^63 - 1.
  [
    'INT64',
    protoField(3, Buffer.concat([minusOne, Buffer.from('ffffffffffffffff7f', 'hex')])),
    [...Buffer.alloc(8, 255), ...Buffer.alloc(7, 255), 127],
  ],
  // Not packed.
  ['UINT8', Buffer.of(4 * 8, 200, 1, 4 * 8, 7), [200, 7]],
  [
    'FP64',
    protoField(7, Buffer.from(Float64Array.of(1.5, -2).buffer)),
    [...Buffer.from(Float64Array.of(1.5, -2).buffer)],
  ],
  ['FP32', Buffer.concat([protoField(6, half), protoField(6, half)]), [...half, ...half]],
  ['BYTES', Buffer.concat([protoField(8, 'ab'), protoField(8, '')]), [2, 0, 0, 0, 97, 98, 0, 0, 0, 0]],
])('reads a list of %s', async (datatype, contents, bytes) => {
  const port = await startRemote({ listed: outputField(datatype, [2], contents) })
  const model = await serve(port, 'listed', datatype === 'BYTES' ? 'STRING' : datatype)
  const [y] = await model.infer(x)
  expect([...(y?.data ?? [])]).toEqual(bytes)
})

it('R10: starts another thread once the one that calls the server has ended, however many requests it had', async () => {
  const answer = Buffer.concat([outputField('FP32', [1]), rawField(half)])
  const port = await startRemote({ fragile: answer })
  const entry = fileURLToPath(new URL('../../support/fragile-kserve-worker.mjs', import.meta.url))
  const model = await serve(port, 'fragile', 'FP32', { entry, instances: 16 })
  const deadly = requestOf([fp32('x', [1], [201])])
  for (let round = 0; round < 2; round++) {
    const failed = await Promise.allSettled([
      ...Array.from({ length: 15 }, () => model.infer(x)),
      model.infer(deadly),
    ])
    expect(failed.at(-1)).toMatchObject({
      reason: { status: 'INTERNAL', message: expect.stringContaining('instance local ended') as string },
    })
    expect((await model.infer(x))[0]?.data).toEqual(new Uint8Array(half))
  }
})
