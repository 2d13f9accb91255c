import { describe, expect, it } from 'vitest'
import type { Datatype } from '../../../src/tensors/element-type.js'
import type { Tensor } from '../../../src/tensors/tensor.js'
import { buildOnnx, type ElementType } from '../../support/onnx-builder.js'
import { floats, fp32, inferRequest, scheduledModel } from '../../support/scheduled-model.js'
import { recordingLog } from '../../support/silent-log.js'

/** Gives back its inputs. */
function echo(
  tensors: readonly Readonly<{ type: ElementType; shape: readonly (number | string)[] }>[],
): Uint8Array {
  return buildOnnx({
    inputs: tensors.map((tensor, index) => ({ name: `in${index}`, ...tensor })),
    outputs: tensors.map((tensor, index) => ({ name: `out${index}`, ...tensor })),
    nodes: tensors.map((_, index) => ({ op: 'Identity', inputs: [`in${index}`], outputs: [`out${index}`] })),
  })
}

const strings = (...values: string[]) =>
  Buffer.concat(
    values.map((value) => {
      const text = Buffer.from(value)
      const length = Buffer.alloc(4)
      length.writeUInt32LE(text.length)
      return Buffer.concat([length, text])
    }),
  )

describe('onnxruntime backend', () => {
  it.each<[ElementType, Datatype, number]>([
    ['float32', 'FP32', 4],
    ['float64', 'FP64', 8],
    ['float16', 'FP16', 2],
    ['bool', 'BOOL', 1],
    ['uint8', 'UINT8', 1],
    ['int8', 'INT8', 1],
    ['uint16', 'UINT16', 2],
    ['int16', 'INT16', 2],
    ['uint32', 'UINT32', 4],
    ['int32', 'INT32', 4],
    ['uint64', 'UINT64', 8],
    ['int64', 'INT64', 8],
  ])('passes %s as %s, bit by bit, from any offset', async (type, datatype, bytes) => {
    const model = await scheduledModel(echo([{ type, shape: ['batch', 3] }]))
    expect(model.inputs).toEqual([{ name: 'in0', datatype, shape: [-1, 3] }])
    const buffer = new Uint8Array(1 + 6 * bytes).map((_, index) => (datatype === 'BOOL' ? index & 1 : index))
    const input: Tensor = { name: 'in0', datatype, shape: [2, 3], data: buffer.subarray(1) }
    const [output] = await model.infer(inferRequest([input]))
    expect(output).toMatchObject({ name: 'out0', datatype, shape: [2, 3] })
    expect([...output!.data]).toEqual([...input.data])
  })

  it('passes strings', async () => {
    const model = await scheduledModel(echo([{ type: 'string', shape: ['batch', 2] }]))
    const data = strings('helmet', '', 'Größe', 'b')
    const [output] = await model.infer(
      inferRequest([{ name: 'in0', datatype: 'BYTES', shape: [2, 2], data }]),
    )
    expect(Buffer.from(output!.data)).toEqual(data)
  })

  it('refuses strings that are not UTF-8, and answers the others of the batch', async () => {
    const model = await scheduledModel(
      echo([{ type: 'string', shape: ['batch', 1] }]),
      'max_batch_size: 2 instance_group { count: 1 kind: KIND_CPU } dynamic_batching { preferred_batch_size: 2 max_queue_delay_microseconds: 10000000 }',
    )
    const input = (data: Uint8Array) =>
      inferRequest([{ name: 'in0', datatype: 'BYTES', shape: [1, 1], data }])
    const [bad, good] = await Promise.allSettled([
      model.infer(input(Buffer.from([1, 0, 0, 0, 0xff]))),
      model.infer(input(strings('ok'))),
    ])
    expect(bad).toMatchObject({ reason: { status: 'INVALID_ARG' } })
    expect(good).toMatchObject({ value: [{ shape: [1, 1] }] })
  })

  it('refuses a model with BF16 tensors by name', async () => {
    const onnx = echo([{ type: 'bfloat16', shape: ['batch', 1] }])
    await expect(scheduledModel(onnx)).rejects.toThrow('tensor "in0" bfloat16')
  })

  it('runs several inputs and outputs, and gives only what was asked for, in that order', async () => {
    const model = await scheduledModel(
      echo([
        { type: 'float32', shape: ['batch', 1] },
        { type: 'float32', shape: ['batch', 2] },
      ]),
    )
    const inputs = [fp32('in1', [1, 2], [1, 2]), fp32('in0', [1, 1], [3])]
    const all = await model.infer(inferRequest(inputs))
    expect(all.map((tensor) => [tensor.name, floats(tensor)])).toEqual([
      ['out0', [3]],
      ['out1', [1, 2]],
    ])
    const outputs = ['out1', 'out0'].map((name) => ({ name, classification: 0 }))
    const some = await model.infer(inferRequest(inputs, { outputs }))
    expect(some.map((tensor) => tensor.name)).toEqual(['out1', 'out0'])
  })

  it('runs models without a batch dimension one request at a time', async () => {
    const model = await scheduledModel(echo([{ type: 'float32', shape: [2, 'width'] }]))
    expect(model.config.max_batch_size).toBe(0)
    expect(model.inputs[0]?.shape).toEqual([2, -1])
    const answers = await Promise.all(
      [1, 2, 3].map((width) =>
        model.infer(inferRequest([fp32('in0', [2, width], Array(2 * width).fill(width))])),
      ),
    )
    expect(answers.map(([output]) => output?.shape)).toEqual([
      [2, 1],
      [2, 2],
      [2, 3],
    ])
  })

  it('reshapes at the border of the model, both ways', async () => {
    const model = await scheduledModel(
      echo([{ type: 'float32', shape: ['batch'] }]),
      `max_batch_size: 4
       input { name: "in0" data_type: TYPE_FP32 dims: 1 reshape { shape: [ ] } }
       output { name: "out0" data_type: TYPE_FP32 dims: 1 reshape { shape: [ ] } }`,
    )
    const [output] = await model.infer(inferRequest([fp32('in0', [3, 1], [1, 2, 3])]))
    expect(output?.shape).toEqual([3, 1])
    expect(floats(output!)).toEqual([1, 2, 3])
  })

  it('completes the configuration: 4 in a batch, batching on, two instances on CPU', async () => {
    const model = await scheduledModel(echo([{ type: 'float32', shape: ['batch', 1] }]))
    expect(model.config).toMatchObject({
      name: 'm',
      backend: 'onnxruntime',
      max_batch_size: 4,
      instance_group: [{ name: 'm_0', kind: 'KIND_CPU', count: 2 }],
    })
    expect(model.platform).toBe('onnxruntime_onnx')
  })

  it('forms batches, gathers them once, and slices the outputs from one buffer', async () => {
    const model = await scheduledModel(
      echo([{ type: 'float32', shape: ['batch', 2] }]),
      'max_batch_size: 4 instance_group { count: 1 kind: KIND_CPU } dynamic_batching { max_queue_delay_microseconds: 10000000 }',
    )
    const answers = await Promise.all(
      [1, 2, 1].map((size, index) =>
        model.infer(inferRequest([fp32('in0', [size, 2], Array(2 * size).fill(index))])),
      ),
    )
    expect(answers.map(([output]) => floats(output!))).toEqual([
      [0, 0],
      [1, 1, 1, 1],
      [2, 2],
    ])
    expect(new Set(answers.map(([output]) => output!.data.buffer)).size).toBe(1)
    const statistics = model.statistics()
    expect(statistics).toMatchObject({ inferenceCount: 4, executionCount: 1 })
    expect(statistics.batches.map((batch) => [batch.batchSize, batch.computeInfer.count])).toEqual([[4, 1]])
    expect(model.recorder.copiedBytes).toBe(4 * 2 * 4)
  })

  it('moves a large tensor that may be moved, without copying it', async () => {
    const model = await scheduledModel(
      echo([{ type: 'uint8', shape: ['batch', 3, 640, 640] }]),
      'instance_group { count: 1 kind: KIND_CPU }',
    )
    const image = (movable: boolean, offset = 0): Tensor => ({
      name: 'in0',
      datatype: 'UINT8',
      shape: [1, 3, 640, 640],
      data: new Uint8Array(offset + 1_228_800).fill(7).subarray(offset),
      ...(movable ? { movable } : {}),
    })
    const moved = image(true, 13)
    const [output] = await model.infer(inferRequest([moved]))
    expect(output?.data.byteLength).toBe(1_228_800)
    expect(output?.data.every((value) => value === 7)).toBe(true)
    expect([model.recorder.copiedBytes, moved.data.byteLength]).toEqual([0, 0])
    const kept = image(false)
    await model.infer(inferRequest([kept]))
    expect([model.recorder.copiedBytes, kept.data.byteLength]).toEqual([1_228_800, 1_228_800])
  })

  it('says what ONNX Runtime said when a run fails', async () => {
    const add = buildOnnx({
      inputs: [
        { name: 'a', type: 'float32', shape: ['n'] },
        { name: 'b', type: 'float32', shape: ['k'] },
      ],
      outputs: [{ name: 'sum', type: 'float32', shape: ['m'] }],
      nodes: [{ op: 'Add', inputs: ['a', 'b'], outputs: ['sum'] }],
    })
    const model = await scheduledModel(
      add,
      `max_batch_size: 0
       input [ { name: "a" data_type: TYPE_FP32 dims: -1 }, { name: "b" data_type: TYPE_FP32 dims: -1 } ]
       output { name: "sum" data_type: TYPE_FP32 dims: -1 }`,
    )
    const request = inferRequest([fp32('a', [2], [1, 2]), fp32('b', [3], [1, 2, 3])])
    await expect(model.infer(request)).rejects.toMatchObject({
      status: 'INTERNAL',
      reason: 'BACKEND',
      message: expect.stringContaining('onnx runtime error') as string,
    })
    const good = inferRequest([fp32('a', [2], [1, 2]), fp32('b', [2], [1, 2])])
    expect(floats((await model.infer(good))[0]!)).toEqual([2, 4])
    expect(model.recorder.failures.BACKEND).toBe(1)
  })

  it.each([
    ['parameters { key: "intra_op_thread_count" value { string_value: "two" } }', 'intra_op_thread_count'],
    [
      'instance_group { kind: KIND_GPU }',
      'has kind KIND_GPU but server does not support GPUs: inference.providers are [cpu]',
    ],
    [
      'input { name: "in9" data_type: TYPE_FP32 dims: 1 } output { name: "out0" data_type: TYPE_FP32 dims: 1 }',
      'no input "in9"',
    ],
    [
      'model_warmup { name: "w" inputs { key: "in0" value { data_type: TYPE_FP32 dims: 7 zero_data: true } } }',
      'model_warmup[0].inputs["in0"].dims',
    ],
  ])('refuses to load with %s', async (config, problem) => {
    const onnx = echo([{ type: 'float32', shape: ['batch', 1] }])
    await expect(scheduledModel(onnx, config)).rejects.toThrow(problem)
  })

  it('honours parameters, graph level and warm-up requests', async () => {
    const { log, lines } = recordingLog()
    const model = await scheduledModel(
      echo([{ type: 'float32', shape: ['batch', 1] }]),
      `optimization { graph { level: 2 } }
       parameters { key: "intra_op_thread_count" value { string_value: "2" } }
       parameters { key: "enable_mem_arena" value { string_value: "0" } }
       parameters { key: "session.use_device_allocator_for_initializers" value { string_value: "1" } }
       model_warmup { name: "w" batch_size: 2 count: 3
         inputs { key: "in0" value { data_type: TYPE_FP32 dims: 1 random_data: true } } }`,
      log,
    )
    expect(floats((await model.infer(inferRequest([fp32('in0', [1, 1], [5])])))[0]!)).toEqual([5])
    expect(model.statistics().inferenceCount).toBe(1)
    expect(lines).toContainEqual(expect.objectContaining({ provider: 'cpu' }))
  })
})
