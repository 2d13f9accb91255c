import { expect, it } from 'vitest'
import type { InputPlan } from '../../../src/detector/input-tensor.js'
import { readOnnxFile } from '../../../src/repository/onnx-file.js'
import { resizeInput } from '../../../src/tools/transform/resize-input.js'
import { buildOnnx, type Constant, type Node } from '../../support/onnx-builder.js'
import { answersOf, modelFile, noise } from '../../support/transformed.js'

const plan: InputPlan = {
  name: 'images',
  layout: 'float32-nchw',
  size: { widthPx: 256, heightPx: 256 },
  channels: 'rgb',
  range: '0-1',
  align: 'center',
}
const wide = { widthPx: 320, heightPx: 192 }
const whole = (name: string, ...numbers: number[]): Constant => ({
  name,
  shape: [numbers.length],
  data: BigInt64Array.from(numbers, BigInt),
})

/** Two numbers for each cell of strides 8, 16 and 32: the mean of its pixels, and its column as a constant, as exporters write it. */
function gridModel(baked: boolean): string {
  const strides = [8, 16, 32]
  const columns = strides.flatMap((stride) =>
    Array.from(
      { length: (256 / stride) ** 2 },
      (_, at) => [at % (256 / stride), Math.floor(at / (256 / stride))] as const,
    ),
  )
  const pooled = strides.flatMap((stride): Node[] => [
    {
      op: 'AveragePool',
      inputs: ['images'],
      outputs: [`pool${stride}`],
      attributes: { kernel_shape: [stride, stride], strides: [stride, stride] },
    },
    {
      op: 'Reshape',
      inputs: [`pool${stride}`, baked ? `shape${stride}` : 'open'],
      outputs: [`flat${stride}`],
    },
  ])
  const grid = Float32Array.from([
    ...columns.map(([x]) => x + 0.5),
    ...columns.map(([, y]) => y + 0.5),
    ...columns.map(() => 0),
  ])
  return modelFile(
    buildOnnx({
      inputs: [{ name: 'images', type: 'float32', shape: [1, 3, 256, 256] }],
      outputs: [{ name: 'out', type: 'float32', shape: [1, 3, columns.length] }],
      nodes: [
        ...pooled,
        {
          op: 'Concat',
          inputs: strides.map((stride) => `flat${stride}`),
          outputs: [baked ? 'means' : 'out'],
          attributes: { axis: 2 },
        },
        ...(baked
          ? [
              { op: 'Slice', inputs: ['means', 'nought', 'two', 'one'], outputs: ['both'] },
              { op: 'Add', inputs: ['both', 'grid'], outputs: ['out'] },
            ]
          : []),
      ],
      constants: [
        ...strides.map((stride) => whole(`shape${stride}`, 1, 3, (256 / stride) ** 2)),
        whole('open', 1, 3, -1),
        whole('nought', 0),
        whole('one', 1),
        whole('two', 2),
        { name: 'grid', shape: [1, 2, columns.length], data: grid.slice(0, columns.length * 2) },
      ],
    }),
  )
}

const tensor = { name: 'images', type: 'float32', shape: [1, 3, 256, 256] } as const
const cells = 40 * 24 + 20 * 12 + 10 * 6

it('gives another size, and what is measured of the outputs', async () => {
  const path = modelFile(await resizeInput(gridModel(false), plan, tensor, wide))
  expect(readOnnxFile(path)).toMatchObject({
    inputs: [{ shape: [1, 3, 192, 320] }],
    outputs: [{ shape: [1, 3, cells] }],
  })
})

it('makes the grids anew that are constants of the old size', async () => {
  const path = await resizeInput(gridModel(true), plan, tensor, wide)
  const { out } = await answersOf(path, { ...plan, size: wide }, [noise(wide)])
  expect(out!.dims).toEqual([1, 2, cells])
  const [first, later] = [out!.values[0]!, out!.values[41]!]
  // Columns 0 and 1 of a grid of 40, with means of pixels between 0 and 1.
  expect([Math.floor(first - 0.5), Math.floor(later - 0.5)]).toEqual([0, 1])
})

it('leaves the size free where nothing in the graph is made for one', async () => {
  const path = modelFile(await resizeInput(gridModel(false), plan, tensor, 'free'))
  expect(readOnnxFile(path)).toMatchObject({
    inputs: [{ shape: [1, 3, 'height', 'width'] }],
    outputs: [{ shape: [1, 3, 'out_2'] }],
  })
  await expect(resizeInput(gridModel(true), plan, tensor, 'free')).rejects.toThrow(
    'constant "grid" is the grid of 256x256',
  )
})

it('says which node does not take the new size', async () => {
  const path = modelFile(
    buildOnnx({
      inputs: [{ name: 'images', type: 'float32', shape: [1, 3, 256, 256] }],
      outputs: [{ name: 'out', type: 'float32', shape: [1, 196608] }],
      nodes: [{ op: 'Reshape', inputs: ['images', 'shape'], outputs: ['out'] }],
      constants: [whole('shape', 1, 196_608)],
    }),
  )
  await expect(resizeInput(path, plan, tensor, wide)).rejects.toThrow(
    /does not run with pictures of 320x192: .*Reshape_0/,
  )
  const uneven = { widthPx: 300, heightPx: 192 }
  await expect(resizeInput(gridModel(true), plan, tensor, uneven)).rejects.toThrow(
    '300x192 does not fit: constant',
  )
})
