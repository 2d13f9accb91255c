import { describe, expect, it } from 'vitest'
import { buildOnnx } from '../support/onnx-builder.js'
import { addModel } from '../support/onnx-models.js'
import { floatsOf, fp32Input, ServedRepository } from '../support/served-repository.js'
import { tempDir } from '../support/temp-dir.js'

/** `B` is `A` and one. */
function plusOne(shape: readonly (number | string)[]): Uint8Array {
  return buildOnnx({
    inputs: [{ name: 'A', type: 'float32', shape }],
    outputs: [{ name: 'B', type: 'float32', shape }],
    constants: [{ name: 'one', shape: [], data: Float32Array.of(1) }],
    nodes: [{ op: 'Add', inputs: ['A', 'one'], outputs: ['B'] }],
  })
}

type Form = Readonly<{ most: number; dims: readonly number[]; shape: readonly (number | string)[] }>

const forms: Readonly<Record<string, Form>> = {
  batching: { most: 8, dims: [3], shape: ['batch', 3] },
  batchingAnySize: { most: 8, dims: [-1], shape: ['batch', 'n'] },
  batchingLess: { most: 2, dims: [3], shape: ['batch', 3] },
  whole: { most: 0, dims: [3], shape: [3] },
  wholeAnySize: { most: 0, dims: [-1], shape: ['n'] },
  rows: { most: 0, dims: [-1, 3], shape: ['n', 3] },
  rowsAnySize: { most: 0, dims: [-1, -1], shape: ['n', 'm'] },
  oneRow: { most: 0, dims: [1, 3], shape: [1, 3] },
}

function tensors(dims: readonly number[]): string {
  const tensor = (name: string) => `{ name: "${name}" data_type: TYPE_FP32 dims: [ ${dims.join(', ')} ] }`
  return `input ${tensor('A')} output ${tensor('B')}`
}

/** An ensemble whose steps follow each other. */
function chain(most: number, dims: readonly number[], steps: readonly string[]): string {
  const name = (at: number) => (at === 0 ? 'A' : at === steps.length ? 'B' : `t${at}`)
  const written = steps.map(
    (model, at) =>
      `step { model_name: "${model}" input_map { key: "A" value: "${name(at)}" } output_map { key: "B" value: "${name(at + 1)}" } }`,
  )
  return `platform: "ensemble" max_batch_size: ${most} ${tensors(dims)} ensemble_scheduling { ${written.join(' ')} }`
}

async function serve(
  most: number,
  dims: readonly number[],
  steps: readonly string[],
): Promise<ServedRepository> {
  const dir = tempDir()
  for (const name of new Set(steps)) {
    const { most: own, dims: ofModel, shape } = forms[name]!
    addModel(dir, name, { onnx: plusOne(shape), config: `max_batch_size: ${own} ${tensors(ofModel)}` })
  }
  addModel(dir, 'e', { config: chain(most, dims, steps) })
  return ServedRepository.of(dir)
}

const values = (shape: readonly number[]) =>
  Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, index) => index)

describe('an ensemble of models with and without a batch dimension', () => {
  it.each<[string, number, number[], string[], number[]]>([
    ['a batch goes to a model without batches as one tensor', 8, [3], ['rows'], [5, 3]],
    ['so it does where that leaves all sizes free', 8, [3], ['rowsAnySize'], [8, 3]],
    ['a batch of one loses its dimension where the model has none', 8, [3], ['whole'], [1, 3]],
    ['and keeps it where the model has it too', 8, [3], ['oneRow'], [1, 3]],
    ['a tensor becomes a batch of one', 0, [3], ['batching'], [3]],
    ['so it does where the model leaves its size free', 0, [3], ['batchingAnySize'], [3]],
    ['and where the ensemble does', 0, [-1], ['batching'], [3]],
    ['the first size of a tensor is the batch where it has one more', 0, [-1, 3], ['batching'], [4, 3]],
    [
      'a batch goes through steps of both kinds',
      8,
      [3],
      ['batching', 'rows', 'batching', 'rowsAnySize'],
      [6, 3],
    ],
    ['so does a tensor', 0, [3], ['whole', 'batching', 'wholeAnySize', 'batchingAnySize'], [3]],
    ['and rows', 0, [-1, 3], ['rows', 'batching', 'rowsAnySize'], [7, 3]],
  ])('%s', async (_, most, dims, steps, shape) => {
    const served = await serve(most, dims, steps)
    const given = values(shape)
    for (const heard of await served.both('e', [fp32Input('A', shape, given)]))
      expect(floatsOf(heard)).toEqual([['B', shape, given.map((value) => value + steps.length)]])
  })

  it('tells of a batch that a model without batches cannot take, and of one that is too large', async () => {
    const served = await serve(8, [3], ['whole'])
    for (const heard of await served.both('e', [fp32Input('A', [2, 3], values([2, 3]))]))
      expect(heard).toMatchObject({
        error: expect.stringMatching(
          /^in ensemble 'e', .*unexpected shape for input 'A'.*Expected \[3\], got \[2,3\]/,
        ) as string,
      })
    const rows = await serve(0, [-1, 3], ['batching'])
    for (const heard of await rows.both('e', [fp32Input('A', [9, 3], values([9, 3]))]))
      expect(heard).toMatchObject({ error: expect.stringContaining('batch-size must be <= 8') as string })
  })

  it.each<[string, number, number[], string[], string]>([
    ['other sizes', 0, [4], ['batching'], 'input "A" of step[0] (batching) is TYPE_FP32 [-1, 3], but "A"'],
    [
      'two dimensions more',
      8,
      [3, 3, 3],
      ['whole'],
      'input "A" of step[0] (whole) is TYPE_FP32 [3], but "A"',
    ],
    [
      'steps of both kinds that do not fit',
      8,
      [3],
      ['batching', 'rows', 'batchingLess'],
      'allows maximum batch size 8',
    ],
  ])(
    'is refused with step and tensor where shapes fit neither way: %s',
    async (_, most, dims, steps, reason) => {
      const served = await serve(most, dims, steps)
      const { models } = (await served.grpc.call('RepositoryIndex', {})) as {
        models: { name: string; reason: string }[]
      }
      expect(models.find(({ name }) => name === 'e')?.reason).toContain(reason)
    },
  )

  it('may stand in another one', async () => {
    const dir = tempDir()
    for (const name of ['batching', 'rows']) {
      const { most, dims, shape } = forms[name]!
      addModel(dir, name, { onnx: plusOne(shape), config: `max_batch_size: ${most} ${tensors(dims)}` })
    }
    addModel(dir, 'inner', { config: chain(8, [3], ['rows', 'batching']) })
    addModel(dir, 'e', { config: chain(0, [3], ['inner', 'batching']) })
    const served = await ServedRepository.of(dir)
    for (const heard of await served.both('e', [fp32Input('A', [3], [1, 2, 3])]))
      expect(floatsOf(heard)).toEqual([['B', [3], [4, 5, 6]]])
  })

  it('has the shapes of reshape towards its steps alone', async () => {
    const dir = tempDir()
    addModel(dir, 'batching', { onnx: plusOne(['batch', 3]), config: `max_batch_size: 8 ${tensors([3])}` })
    const reshaped = chain(8, [3, 1], ['batching']).replaceAll(
      'dims: [ 3, 1 ]',
      'dims: [ 3, 1 ] reshape { shape: [ 3 ] }',
    )
    addModel(dir, 'e', { config: reshaped })
    const served = await ServedRepository.of(dir)
    for (const heard of await served.both('e', [fp32Input('A', [2, 3, 1], values([2, 3]))]))
      expect(floatsOf(heard)).toEqual([['B', [2, 3, 1], [1, 2, 3, 4, 5, 6]]])
  })
})
