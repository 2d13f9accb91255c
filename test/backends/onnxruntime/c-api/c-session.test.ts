import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import ort from 'onnxruntime-node'
import { describe, expect, it, onTestFinished } from 'vitest'
import { CSession } from '../../../../src/backends/onnxruntime/c-api/c-session.js'
import type { DeviceMemory } from '../../../../src/backends/onnxruntime/c-api/device.js'
import { type OrtApi, ortApi } from '../../../../src/backends/onnxruntime/c-api/ort-api.js'
import { emptyTensor } from '../../../../src/backends/onnxruntime/ort-tensor.js'
import type { OrtSession, Tensors } from '../../../../src/backends/onnxruntime/session.js'
import { buildOnnx, type ElementType, elementTypes } from '../../../support/onnx-builder.js'
import { tempDir } from '../../../support/temp-dir.js'

const api = ortApi() as OrtApi
const leftSession = join(import.meta.dirname, '../../../support/left-session-worker.mjs')

/** A device whose memory is that of the process: it stands in for a card. `copies` counts what goes to it and back. */
function processMemory(copies: string[] = []): DeviceMemory {
  const arena = { name: 'Cpu', allocator: 1, memory: 0 }
  const copy = api.native
    .load('libc.so.6')
    .named('memcpy', { gives: 'address', takes: ['address', 'address', 'size'] })
  return {
    device: arena,
    host: arena,
    copy: (to, from, bytes, direction) => {
      copies.push(`${bytes} ${direction}`)
      copy(to, from, bytes)
    },
  }
}

type Opened = Readonly<{ c: CSession; node: OrtSession; path: string }>

/** The same model by both ways; both are released with the test. */
async function opened(
  onnx: Uint8Array,
  over: Readonly<{ memory?: DeviceMemory; replays?: boolean }> = {},
): Promise<Opened> {
  const path = join(tempDir(), 'model.onnx')
  writeFileSync(path, onnx)
  const c = openC(path, over)
  const node: OrtSession = await ort.InferenceSession.create(path, { executionProviders: ['cpu'] })
  onTestFinished(async () => {
    await c.release()
    await node.release()
  })
  return { c, node, path }
}

function openC(
  model: string | Uint8Array,
  over: Readonly<{ memory?: DeviceMemory; replays?: boolean }> = {},
): CSession {
  const prepare = (options: number) => api.call('SetIntraOpNumThreads', options, 1)
  return CSession.open(api, {
    model,
    deviceId: 0,
    prepare,
    runConfig: {},
    memory: undefined,
    replays: false,
    ...over,
  })
}

const identity = (type: ElementType, shape: readonly (number | string)[], op = 'Identity') =>
  buildOnnx({
    inputs: [{ name: 'in', type, shape }],
    outputs: [{ name: 'out', type, shape }],
    nodes: [{ op, inputs: ['in'], outputs: ['out'] }],
  })

const bytesOf = ({ data }: ort.Tensor): unknown =>
  Array.isArray(data)
    ? data
    : [
        ...new Uint8Array(
          (data as Uint8Array).buffer,
          (data as Uint8Array).byteOffset,
          (data as Uint8Array).byteLength,
        ),
      ]

const told = (tensors: Tensors) =>
  Object.entries(tensors)
    .map(([name, tensor]) => [name, tensor.type, [...tensor.dims], bytesOf(tensor)] as const)
    .sort(([a], [b]) => a.localeCompare(b))

/** Every bit is used. */
function patterned(type: ElementType, dims: readonly number[]): ort.Tensor {
  if (type === 'string') {
    const words = ['', 'é', 'a longer word', '日本', 'x', 'y']
    const length = dims.reduce((product, size) => product * size, 1)
    return new ort.Tensor(
      'string',
      Array.from({ length }, (_, n) => words[n % words.length]!),
      dims,
    )
  }
  const tensor = emptyTensor(type as ort.Tensor.Type, dims)
  const { buffer, byteOffset, byteLength } = tensor.data as Uint8Array
  const bytes = new Uint8Array(buffer, byteOffset, byteLength)
  for (const at of bytes.keys()) bytes[at] = type === 'bool' ? at % 2 : (at * 37 + 11) % 256
  return tensor
}

const types = (Object.keys(elementTypes) as ElementType[]).filter((type) => type !== 'bfloat16')

describe('a session of the C API', () => {
  it.each(types)('gives for %s what the binding gives, bit for bit', async (type) => {
    const { c, node } = await opened(identity(type, ['n', 2]))
    for (const rows of [1, 3, 0]) {
      const feeds = { in: patterned(type, [rows, 2]) }
      expect(told(await c.run(feeds, ['out']))).toEqual(told(await node.run(feeds, ['out'])))
    }
  })

  it.each([
    [[], 'float32'],
    [[2, 3, 4], 'int64'],
    [[1], 'string'],
    [['n', 'h', 3], 'uint8'],
    [['', 4], 'float16'],
  ] as const)('tells of inputs and outputs what the binding tells: %j %s', async (shape, type) => {
    const { c, node } = await opened(identity(type, shape))
    expect(c.inputMetadata).toEqual(node.inputMetadata)
    expect(c.outputMetadata).toEqual(node.outputMetadata)
  })

  it('computes what the binding computes', async () => {
    const { c, node } = await opened(
      buildOnnx({
        inputs: [
          { name: 'a', type: 'float32', shape: ['n', 64] },
          { name: 'b', type: 'float32', shape: [64, 32] },
        ],
        outputs: [
          { name: 'product', type: 'float32', shape: ['n', 32] },
          { name: 'root', type: 'float32', shape: ['n', 64] },
        ],
        nodes: [
          { op: 'MatMul', inputs: ['a', 'b'], outputs: ['product'] },
          { op: 'Exp', inputs: ['a'], outputs: ['root'] },
        ],
      }),
    )
    const random = (length: number, dims: number[]) =>
      new ort.Tensor(
        'float32',
        Float32Array.from({ length }, (_, n) => Math.sin(n * 1.7)),
        dims,
      )
    const feeds = { b: random(2_048, [64, 32]), a: random(320, [5, 64]) }
    for (const names of [['product', 'root'], ['root'], ['root', 'product']])
      expect(told(await c.run(feeds, names))).toEqual(told(await node.run(feeds, names)))
  })

  it('writes into the tensors that it is given, and gives those back', async () => {
    const { c } = await opened(identity('float32', ['n', 2], 'Neg'))
    const out = emptyTensor('float32', [2, 2])
    const feeds = { in: new ort.Tensor('float32', Float32Array.of(1, 2, 3, 4), [2, 2]) }
    const answer = await c.run(feeds, { out })
    expect(answer.out).toBe(out)
    expect([...(out.data as Float32Array)]).toEqual([-1, -2, -3, -4])
  })

  it('takes elements that lie anywhere in their buffer', async () => {
    const { c } = await opened(identity('int16', ['n']))
    const data = new Int16Array(Int16Array.of(9, 9, 1, 2, 3, 9).buffer, 4, 3)
    const answer = await c.run({ in: new ort.Tensor('int16', data, [3]) }, ['out'])
    expect([...(answer.out!.data as Int16Array)]).toEqual([1, 2, 3])
    const { c: ofBytes } = await opened(identity('uint8', ['n']))
    const bytes = Uint8Array.of(9, 1, 2, 9).subarray(1, 3)
    expect(bytesOf((await ofBytes.run({ in: new ort.Tensor('uint8', bytes, [2]) }, ['out'])).out!)).toEqual([
      1, 2,
    ])
  })

  it('says of what cannot run what the binding says, and runs on', async () => {
    const { c, node } = await opened(identity('float32', [1, 2], 'Neg'))
    const good = { in: new ort.Tensor('float32', Float32Array.of(1, 2), [1, 2]) }
    const wrong = [
      [{}, ['out']],
      [good, ['nothing']],
      [{ in: new ort.Tensor('float32', Float32Array.of(1, 2, 3), [1, 3]) }, ['out']],
      [{ in: new ort.Tensor('int32', Int32Array.of(1, 2), [1, 2]) }, ['out']],
    ] as const
    const reason = async (session: OrtSession, [feeds, names]: (typeof wrong)[number]) => {
      const error = await session.run(feeds as Tensors, names).catch((thrown: unknown) => thrown)
      return (error as Error).message
    }
    for (const each of wrong) expect(await reason(c, each)).toBe(await reason(node, each))
    expect([...((await c.run(good, ['out'])).out!.data as Float32Array)]).toEqual([-1, -2])
  })

  it('opens a model by its bytes', async () => {
    const c = openC(identity('float32', ['n'], 'Neg'))
    const { out } = await c.run({ in: new ort.Tensor('float32', Float32Array.of(1, 2), [2]) }, ['out'])
    expect([...(out!.data as Float32Array)]).toEqual([-1, -2])
    await c.release()
    expect(() => openC(Uint8Array.of(1, 2, 3))).toThrow(/protobuf|failed/i)
  })

  it('throws for a model that is none, as often as it is tried', () => {
    const path = join(tempDir(), 'model.onnx')
    writeFileSync(path, 'no model')
    for (let tries = 0; tries < 20; tries++) expect(() => openC(path)).toThrow(/failed|protobuf/i)
  })

  it('runs nothing once it is released, and may be released twice', async () => {
    const { c } = await opened(identity('float32', [1]))
    await c.release()
    await c.release()
    await expect(c.run({ in: new ort.Tensor('float32', Float32Array.of(1), [1]) }, ['out'])).rejects.toThrow(
      'is released',
    )
  })

  /** A model with 16 MiB of weights and as much for its output. */
  function large(): string {
    const weights = new Float32Array(4 * 2 ** 20)
    const path = join(tempDir(), 'large.onnx')
    const onnx = buildOnnx({
      inputs: [{ name: 'in', type: 'float32', shape: [1] }],
      outputs: [{ name: 'out', type: 'float32', shape: [weights.length] }],
      constants: [{ name: 'weights', shape: [weights.length], data: weights }],
      nodes: [{ op: 'Add', inputs: ['in', 'weights'], outputs: ['out'] }],
    })
    writeFileSync(path, onnx)
    return path
  }

  /** Memory that is left behind by so many more, once some have been. */
  async function leftBehind(once: () => Promise<unknown>, more: number): Promise<number> {
    for (let warm = 0; warm < 2; warm++) await once()
    const before = process.memoryUsage.rss()
    for (let next = 0; next < more; next++) await once()
    return process.memoryUsage.rss() - before
  }

  it('gives its memory back, and so does a thread that ends without a release', async () => {
    const path = large()
    const released = async () => {
      const session = openC(path)
      await session.run({ in: new ort.Tensor('float32', Float32Array.of(1), [1]) }, ['out'])
      await session.release()
    }
    const ended = () => once(new Worker(leftSession, { workerData: path }), 'exit')
    expect(await leftBehind(released, 6)).toBeLessThan(64 * 2 ** 20)
    expect(await leftBehind(ended, 6)).toBeLessThan(64 * 2 ** 20)
  }, 60_000)

  it('runs in several threads at once', async () => {
    const path = large()
    const codes = await Promise.all(
      Array.from({ length: 3 }, () => once(new Worker(leftSession, { workerData: path }), 'exit')),
    )
    expect(codes.flat()).toEqual([0, 0, 0])
  })
})

describe('memory that a device reads by itself', () => {
  it('is an input and an output like any other, until its session is released', async () => {
    const { c, path } = await opened(identity('float32', ['n', 2], 'Neg'), { memory: processMemory() })
    const memory = c.memory(16)!
    const into = c.memory(16)!
    new Float32Array(memory).set([1, 2, 3, 4])
    const feeds = { in: new ort.Tensor('float32', new Float32Array(memory), [2, 2]) }
    const out = new ort.Tensor('float32', new Float32Array(into), [2, 2])
    await c.run(feeds, { out })
    expect([...new Float32Array(into)]).toEqual([-1, -2, -3, -4])
    await c.release()
    expect([memory.byteLength, into.byteLength]).toEqual([0, 0])
    const without = openC(path)
    expect(without.memory(16)).toBeUndefined()
    await without.release()
  })
})

describe('a run that is recorded', () => {
  const negated = async (copies: string[]) => {
    const { c } = await opened(identity('float32', ['n', 2], 'Neg'), {
      memory: processMemory(copies),
      replays: true,
    })
    const run = async (values: readonly number[], fetches?: Tensors) => {
      const feeds = { in: new ort.Tensor('float32', Float32Array.from(values), [values.length / 2, 2]) }
      const { out } = await c.run(feeds, fetches ?? ['out'])
      return [...(out!.data as Float32Array)]
    }
    return { c, run }
  }

  it('copies inputs to where they were recorded, and outputs from there', async () => {
    const copies: string[] = []
    const { c, run } = await negated(copies)
    for (const values of [
      [1, 2],
      [3, 4],
      [5, 6],
    ])
      expect(await run(values)).toEqual(values.map((v) => -v))
    expect(copies).toEqual([
      '8 to device',
      '8 to host',
      '8 to device',
      '8 to host',
      '8 to device',
      '8 to host',
    ])
    const memory = c.memory(8)!
    new Float32Array(memory).set([7, 8])
    const out = new ort.Tensor('float32', new Float32Array(c.memory(8)!), [1, 2])
    const answer = await c.run({ in: new ort.Tensor('float32', new Float32Array(memory), [1, 2]) }, { out })
    expect([...(answer.out!.data as Float32Array)]).toEqual([-7, -8])
    expect(answer.out).toBe(out)
  })

  it('is left alone by other shapes, which run as they come', async () => {
    const copies: string[] = []
    const { run } = await negated(copies)
    await run([1, 2])
    copies.length = 0
    expect(await run([1, 2, 3, 4])).toEqual([-1, -2, -3, -4])
    expect(copies).toEqual([])
    expect(await run([5, 6])).toEqual([-5, -6])
  })

  it('copies out what is asked for alone', async () => {
    const copies: string[] = []
    const { c } = await opened(
      buildOnnx({
        inputs: [{ name: 'in', type: 'float32', shape: ['n'] }],
        outputs: [
          { name: 'a', type: 'float32', shape: ['n'] },
          { name: 'b', type: 'float32', shape: ['n'] },
        ],
        nodes: [
          { op: 'Neg', inputs: ['in'], outputs: ['a'] },
          { op: 'Abs', inputs: ['in'], outputs: ['b'] },
        ],
      }),
      { memory: processMemory(copies), replays: true },
    )
    const feeds = { in: new ort.Tensor('float32', Float32Array.of(-1, 2, 3), [3]) }
    expect(told(await c.run(feeds, ['b'])).map(([name]) => name)).toEqual(['b'])
    expect(copies.filter((copy) => copy.endsWith('host'))).toHaveLength(1)
  })

  it('is none for a model with strings', async () => {
    const copies: string[] = []
    const { c } = await opened(identity('string', ['n']), { memory: processMemory(copies), replays: true })
    const feeds = { in: new ort.Tensor('string', ['a', 'b'], [2]) }
    for (let runs = 0; runs < 2; runs++) expect((await c.run(feeds, ['out'])).out!.data).toEqual(['a', 'b'])
    expect(copies).toEqual([])
  })
})
