import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildOnnx } from '../support/onnx-builder.js'
import { addModel } from '../support/onnx-models.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'

/** What a client sends: 1 KB, or as many numbers as a small picture has. `infer-clients.mjs` knows them too. */
export const tinyInputs = ['kilobyte', 'picture', 'floats'] as const
export type TinyInput = (typeof tinyInputs)[number]

/**
 * A run takes a few microseconds, so that what is measured is the way to it: `y = x0 + x0` of 1 KB, or how many numbers there are.
 *
 * @param answers - of a larger input: so many of its numbers are the answer, as FP32.
 */
export function tinyOnnx(input: TinyInput = 'kilobyte', answers?: number): Uint8Array {
  if (input === 'kilobyte')
    return buildOnnx({
      inputs: [{ name: 'x0', type: 'float32', shape: [256] }],
      outputs: [{ name: 'y', type: 'float32', shape: [256] }],
      nodes: [{ op: 'Add', inputs: ['x0', 'x0'], outputs: ['y'] }],
    })
  const inputs = [{ name: 'x0', type: input === 'picture' ? 'uint8' : 'float32', shape: [184_320] }] as const
  if (answers !== undefined)
    return buildOnnx({
      inputs,
      outputs: [{ name: 'y', type: 'float32', shape: [answers] }],
      constants: [
        { name: 'from', shape: [1], data: BigInt64Array.of(0n) },
        { name: 'to', shape: [1], data: BigInt64Array.of(BigInt(answers)) },
      ],
      nodes: [
        { op: 'Slice', inputs: ['x0', 'from', 'to'], outputs: ['first'] },
        { op: 'Cast', inputs: ['first'], outputs: ['y'], attributes: { to: 1 } },
      ],
    })
  return buildOnnx({
    inputs,
    outputs: [{ name: 'y', type: 'int64', shape: [1] }],
    nodes: [{ op: 'Shape', inputs: ['x0'], outputs: ['y'] }],
  })
}

const config = 'max_batch_size: 0 instance_group { kind: KIND_CPU count: 1 }'

export type TinyRepository = Readonly<{
  dir: string
  onnx: string
}>

/** A new folder with the model `tiny` alone; the caller removes it. Batching is off. */
export function tinyRepository(input?: TinyInput, answers?: number): TinyRepository {
  const dir = mkdtempSync(join(tmpdir(), 'gantry-bench-'))
  addModel(dir, 'tiny', { onnx: tinyOnnx(input, answers), config })
  return { dir, onnx: join(dir, 'tiny/1/model.onnx') }
}

/**
 * A service without cameras that serves `tiny`, its processes at the priority of everything else on the machine.
 *
 * @param models - that are loaded; those of this installation are there too.
 */
export async function tinyService(
  repository: TinyRepository,
  { models = ['tiny'], under = [] }: Readonly<{ models?: readonly string[]; under?: readonly string[] }> = {},
): Promise<TestService> {
  const service = await TestService.start({
    under,
    pipeline: {
      models: {
        repository: [repository.dir, join(import.meta.dirname, '../../models')],
        control: 'explicit',
        load: models,
      },
      modelServer: { nice: 0 },
    },
  })
  for (const model of models)
    await until(
      `model ${model}`,
      async () => (await fetch(`${service.url}/v2/models/${model}/ready`)).ok,
      60_000,
    )
  return service
}

/** Where the service takes gRPC. */
export async function grpcAddress(service: TestService): Promise<string> {
  const port = await until('gRPC', async () => (await service.ready()).modelServer?.grpcPort, 30_000)
  return `127.0.0.1:${port}`
}
