import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { InferRequest, SharedPlace } from '../../../src/runtime/infer.js'
import type { ModelServer } from '../../../src/serving/model-server.js'
import { SharedRegions } from '../../../src/serving/shared-memory/shared-regions.js'
import { SharedTensors } from '../../../src/serving/shared-memory/shared-tensors.js'
import { packStrings } from '../../../src/tensors/elements.js'
import type { Datatype } from '../../../src/tensors/element-type.js'
import { requestOf } from '../../support/direct-model.js'
import { echoOnnx } from '../../support/model-repository.js'
import { addModel } from '../../support/onnx-models.js'
import { serveRepository } from '../../support/real-repository.js'
import { SharedObject } from '../../support/shared-memory.js'
import { tempDir } from '../../support/temp-dir.js'

const requestBytes = 1024 ** 2
const values = Float32Array.of(1, 2.5, -3)
const bytesOf = (array: ArrayBufferView) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength)

async function served(): Promise<ModelServer & { memory: NonNullable<ModelServer['sharedMemory']> }> {
  const repository = tempDir()
  addModel(repository, 'floats', { onnx: echoOnnx('float32', ['batch', 3]) })
  addModel(repository, 'texts', { onnx: echoOnnx('string', ['batch', 2]) })
  addModel(repository, 'wide', { onnx: echoOnnx('uint8', ['batch', 'n']) })
  const server = await serveRepository(repository, { sharedBytes: requestBytes })
  return Object.assign(server, { memory: server.sharedMemory! })
}

type Sent = Readonly<{ datatype?: Datatype; shape?: readonly number[]; from?: SharedPlace; to?: SharedPlace }>

/** One input, in shared memory unless its data are given, and where its output goes. */
function request(model: string, { datatype = 'FP32', shape = [1, 3], from, to }: Sent): InferRequest {
  const data = from === undefined ? bytesOf(values) : new Uint8Array(0)
  return {
    ...requestOf([{ name: 'in0', datatype, shape, data }], { model }),
    ...(from === undefined ? {} : { sharedInputs: new Map([[0, from]]) }),
    ...(to === undefined ? {} : { outputs: [{ name: 'out0', classification: 0, place: to }] }),
  }
}

/** Descriptors that this process has of an object. */
const opened = ({ path }: SharedObject) =>
  readdirSync('/proc/self/fd').filter((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`).startsWith(path)
    } catch {
      return false
    }
  }).length

describe('regions of shared memory', () => {
  it('are registered, told, and taken back, one or all', () => {
    const regions = new SharedRegions()
    const object = new SharedObject(64)
    const entry = (name: string) => ({ name, key: object.key, offset: 16, byteSize: 48 })
    for (const name of ['a', 'b', '../c d']) regions.register(entry(name))
    expect(regions.status('')).toEqual(['a', 'b', '../c d'].map(entry))
    expect(regions.status('b')).toEqual([entry('b')])
    regions.unregister('b')
    regions.unregister('never registered')
    expect(regions.status('').map(({ name }) => name)).toEqual(['a', '../c d'])
    expect(() => regions.status('b')).toThrow("Unable to find system shared memory region: 'b'")
    regions.unregister('')
    expect(regions.status('')).toEqual([])
  })

  it('close what they opened, also where they are refused', async () => {
    const regions = new SharedRegions()
    const object = new SharedObject(64)
    regions.register({ name: 'a', key: object.key, offset: 0, byteSize: 64 })
    expect(opened(object)).toBe(1)
    expect(() => regions.register({ name: 'b', key: object.key, offset: 0, byteSize: 65 })).toThrow()
    expect(opened(object)).toBe(1)
    regions.unregister('')
    await expect.poll(() => opened(object)).toBe(0)
  })

  it('have a name of their own, that is not taken, and are not too many', () => {
    const regions = new SharedRegions()
    const { key } = new SharedObject(64)
    const register = (name: string) => regions.register({ name, key, offset: 0, byteSize: 64 })
    onTestFinished(() => regions.unregister(''))
    expect(() => register('')).toThrow("'region name' is necessary to register system shared memory region")
    expect(() => register('n'.repeat(1_025))).toThrow('1024 bytes at most')
    register('a')
    expect(() => register('a')).toThrow(
      expect.objectContaining({
        status: 'ALREADY_EXISTS',
        message: "shared memory region 'a' already in manager",
      }),
    )
    for (let count = 1; count < 1_024; count++) register(`region ${count}`)
    expect(() => register('one more')).toThrow('there are 1024 shared memory regions already')
  })

  it.each([
    ['beyond the end', 0, 65],
    ['that begin at the end', 64, 1],
    ['beyond the end, from an offset', 60, 8],
    ['of no size', 0, 0],
    ['of a size that no memory has', 1, Number.MAX_SAFE_INTEGER],
    ['at an offset that no memory has', 2 ** 64, 64],
  ])('are refused %s', (_, offset, byteSize) => {
    const { key } = new SharedObject(64)
    expect(() => new SharedRegions().register({ name: 'a', key, offset, byteSize })).toThrow(
      expect.objectContaining({
        status: 'INVALID_ARG',
        message: expect.stringContaining(
          "failed to register shared memory region 'a': invalid args",
        ) as string,
      }),
    )
  })

  it.each(['', '/', '///', '.', '..', '/..', '../etc/passwd', '/a/b', 'a/../b', 'a\0b', 'k'.repeat(256)])(
    'S8: do not leave their folder by the key %j',
    (key) => {
      expect(() => new SharedRegions().register({ name: 'a', key, offset: 0, byteSize: 1 })).toThrow(
        expect.objectContaining({
          status: 'INVALID_ARG',
          message: `cannot register shared memory region 'a' - invalid shm key '${key}'`,
        }),
      )
    },
  )

  it.each<[string, (path: string) => void, string]>([
    ['nothing', () => undefined, 'there is none of that key'],
    ['a link', (path) => symlinkSync('/etc/hostname', path), 'it is a link'],
    ['a folder', (path) => mkdirSync(path), 'it is a folder'],
    ['a pipe', (path) => execFileSync('mkfifo', [path]), 'it is no shared memory'],
  ])('are no %s', (_, make, reason) => {
    const object = new SharedObject(1)
    rmSync(object.path)
    make(object.path)
    onTestFinished(() => rmSync(object.path, { recursive: true, force: true }))
    expect(() =>
      new SharedRegions().register({ name: 'a', key: object.key, offset: 0, byteSize: 1 }),
    ).toThrow(`Unable to open shared memory region: '${object.key}': ${reason}`)
    expect(opened(object)).toBe(0)
  })
})

describe('tensors in shared memory', () => {
  it('are read from it and written to it, and nothing beside them', async () => {
    const server = await served()
    const object = new SharedObject(Buffer.alloc(100, 7))
    const input = new SharedObject(Buffer.concat([Buffer.alloc(4), bytesOf(values), Buffer.alloc(4)]))
    server.memory.register({ name: 'in', key: input.key, offset: 4, byteSize: 16 })
    server.memory.register({ name: 'out', key: object.key, offset: 20, byteSize: 60 })
    const answer = await server.infer(
      request('floats', {
        from: { region: 'in', offset: 0, bytes: 12 },
        to: { region: 'out', offset: 8, bytes: 32 },
      }),
    )
    expect(answer.outputs).toMatchObject([{ name: 'out0', datatype: 'FP32', shape: [1, 3] }])
    expect(answer.outputs[0]?.data.byteLength).toBe(0)
    expect(answer.inSharedMemory).toEqual(new Set(['out0']))
    const expected = Buffer.alloc(100, 7)
    Buffer.from(bytesOf(values)).copy(expected, 28)
    expect(object.bytes).toEqual(expected)
    const sent = await server.infer(request('floats', { from: { region: 'in', offset: 0, bytes: 12 } }))
    expect(Buffer.from(sent.outputs[0]?.data ?? [])).toEqual(Buffer.from(bytesOf(values)))
    expect(sent.inSharedMemory).toBeUndefined()
  })

  it('may be large, and are texts', async () => {
    const server = await served()
    const large = Buffer.alloc(requestBytes, 'large')
    const [input, output] = [new SharedObject(large), new SharedObject(requestBytes)]
    server.memory.register({ name: 'in', key: input.key, offset: 0, byteSize: requestBytes })
    server.memory.register({ name: 'out', key: output.key, offset: 0, byteSize: requestBytes })
    await server.infer(
      request('wide', {
        datatype: 'UINT8',
        shape: [1, requestBytes],
        from: { region: 'in', offset: 0, bytes: requestBytes },
        to: { region: 'out', offset: 0, bytes: requestBytes },
      }),
    )
    expect(output.bytes.equals(large)).toBe(true)
    const texts = Buffer.from(packStrings(['eins', 'zwei'].map((text) => Buffer.from(text))))
    const object = new SharedObject(Buffer.concat([texts, Buffer.alloc(texts.length)]))
    server.memory.register({ name: 'texts', key: object.key, offset: 0, byteSize: 2 * texts.length })
    const bytes = texts.length
    await server.infer(
      request('texts', {
        datatype: 'BYTES',
        shape: [1, 2],
        from: { region: 'texts', offset: 0, bytes },
        to: { region: 'texts', offset: bytes, bytes },
      }),
    )
    expect(object.bytes).toEqual(Buffer.concat([texts, texts]))
  })

  const within = { region: 'r', offset: 0, bytes: 12 }
  it.each<[string, string, Sent, string, string]>([
    [
      'a model that is unknown, first',
      'nobody',
      { from: { ...within, region: 'x' } },
      'INVALID_ARG',
      "unknown model: 'nobody'",
    ],
    [
      'a region that is unknown',
      'floats',
      { from: { ...within, region: 'x' } },
      'NOT_FOUND',
      "Unable to find shared memory region: 'x'",
    ],
    [
      'a region for an output that is unknown',
      'floats',
      { to: { ...within, region: 'x' } },
      'NOT_FOUND',
      "Unable to find shared memory region: 'x'",
    ],
    [
      'an offset beyond it',
      'floats',
      { from: { ...within, offset: 64 } },
      'INVALID_ARG',
      "Invalid offset for shared memory region: 'r'",
    ],
    [
      'a negative offset',
      'floats',
      { from: { ...within, offset: -4 } },
      'INVALID_ARG',
      "Invalid offset for shared memory region: 'r'",
    ],
    [
      'bytes beyond it',
      'floats',
      { from: { ...within, offset: 60 } },
      'INVALID_ARG',
      "Invalid offset + byte size for shared memory region: 'r'",
    ],
    [
      'negative bytes',
      'floats',
      { from: { ...within, bytes: -1 } },
      'INVALID_ARG',
      "Invalid offset + byte size for shared memory region: 'r'",
    ],
    [
      'bytes beyond it for an output',
      'floats',
      { to: { ...within, bytes: 65 } },
      'INVALID_ARG',
      "Invalid offset + byte size for shared memory region: 'r'",
    ],
    [
      'bytes that are not those of the shape',
      'floats',
      { from: { ...within, bytes: 16 } },
      'INVALID_ARG',
      "input byte size mismatch for input 'in0' for model 'floats'. Expected 12, got 16",
    ],
    [
      'texts that are none',
      'texts',
      { datatype: 'BYTES', shape: [1, 2], from: { ...within, bytes: 3 } },
      'INVALID_ARG',
      "incomplete string length indicator for inference input 'in0'",
    ],
    [
      'too little room for an output',
      'floats',
      { to: { ...within, bytes: 8 } },
      'INTERNAL',
      "shared memory size specified with the request for output 'out0' (8 bytes) should be at least 12 bytes to hold the results",
    ],
    ['an input of another type', 'wide', { to: within }, 'INVALID_ARG', "data-type is 'FP32'"],
  ])('are refused for %s', async (_, model, sent, status, message) => {
    const server = await served()
    const object = new SharedObject(64)
    server.memory.register({ name: 'r', key: object.key, offset: 0, byteSize: 64 })
    await expect(server.infer(request(model, sent))).rejects.toMatchObject({
      status,
      message: expect.stringContaining(message) as string,
    })
    expect(object.bytes).toEqual(Buffer.alloc(64))
    server.memory.unregister('')
    await expect.poll(() => opened(object)).toBe(0)
  })

  it('R71: end nothing when a client cuts its memory short, and do not make it grow', async () => {
    const server = await served()
    const object = new SharedObject(4 * requestBytes)
    const byteSize = requestBytes
    server.memory.register({ name: 'r', key: object.key, offset: 8_192, byteSize })
    const place = { region: 'r', offset: 0, bytes: byteSize }
    const read = request('wide', { datatype: 'UINT8', shape: [1, byteSize], from: place })
    const write = request('floats', { to: place })
    await server.infer(read)
    for (const left of [8_192 + byteSize - 1, 8_192, 4, 0]) {
      object.resize(left)
      const reason = `shared memory region 'r' has become smaller than it was registered: '${object.key}' has ${left} bytes`
      await expect(server.infer(read)).rejects.toMatchObject({ status: 'INVALID_ARG', message: reason })
      if (left <= 8_192)
        await expect(server.infer(write)).rejects.toMatchObject({ status: 'INVALID_ARG', message: reason })
      expect(object.bytes.byteLength).toBe(left)
    }
    object.resize(4 * requestBytes)
    await server.infer(read)
    rmSync(object.path)
    await server.infer(read)
  })

  it('R71: are safe from a client that cuts its memory short over and over while they are read and written', async () => {
    const server = await served()
    const object = new SharedObject(2 * requestBytes)
    server.memory.register({ name: 'r', key: object.key, offset: 0, byteSize: 2 * requestBytes })
    const bytes = requestBytes
    let over = false
    const cutting = (async () => {
      for (let left = 0; !over; left = (left + 77_777) % (2 * requestBytes)) {
        object.resize(left)
        object.resize(2 * requestBytes)
        await new Promise((resolve) => setImmediate(resolve))
      }
    })()
    const outcomes = await Promise.allSettled(
      Array.from({ length: 60 }, () =>
        server.infer(
          request('wide', {
            datatype: 'UINT8',
            shape: [1, bytes],
            from: { region: 'r', offset: 0, bytes },
            to: { region: 'r', offset: bytes, bytes },
          }),
        ),
      ),
    )
    over = true
    await cutting
    for (const outcome of outcomes)
      if (outcome.status === 'rejected')
        expect(String(outcome.reason)).toMatch(/has become smaller|too many bytes of shared memory/)
    object.resize(2 * requestBytes)
    await server.infer(
      request('wide', { datatype: 'UINT8', shape: [1, 3], from: { region: 'r', offset: 0, bytes: 3 } }),
    )
  })

  it('keep a region that is taken back until the request that uses it is answered', async () => {
    const regions = new SharedRegions()
    const tensors = new SharedTensors(regions, requestBytes)
    const object = new SharedObject(64)
    regions.register({ name: 'r', key: object.key, offset: 0, byteSize: 64 })
    let finish: () => void = () => undefined
    const to = { region: 'r', offset: 32, bytes: 12 }
    const answered = tensors.around(
      request('m', { from: { region: 'r', offset: 0, bytes: 12 }, to }),
      async (whole) => {
        await new Promise<void>((resolve) => (finish = resolve))
        const data = bytesOf(values)
        return {
          model: 'm',
          version: '1',
          id: '',
          outputs: [{ ...whole.inputs[0]!, name: 'out0', data }],
          parameters: {},
        }
      },
    )
    await expect.poll(() => String(finish)).not.toBe('() => undefined')
    regions.unregister('')
    const other = new SharedObject(64)
    regions.register({ name: 'r', key: other.key, offset: 0, byteSize: 64 })
    finish()
    await answered
    expect(object.bytes.subarray(32, 44)).toEqual(Buffer.from(bytesOf(values)))
    expect(other.bytes).toEqual(Buffer.alloc(64))
    await expect.poll(() => opened(object)).toBe(0)
  })

  it('R71: are no more than a request may send, each and all together', async () => {
    const regions = new SharedRegions()
    const tensors = new SharedTensors(regions, 1_000)
    const { key } = new SharedObject(8_192)
    regions.register({ name: 'r', key, offset: 0, byteSize: 8_192 })
    onTestFinished(() => regions.unregister(''))
    const asked = (bytes: number, gate: Promise<void> = Promise.resolve()) =>
      tensors.around(
        request('m', { datatype: 'UINT8', shape: [bytes], from: { region: 'r', offset: 0, bytes } }),
        async () => {
          await gate
          return { model: 'm', version: '1', id: '', outputs: [], parameters: {} }
        },
      )
    await expect(asked(1_001)).rejects.toThrow(
      'inputs of the request have 1001 bytes in shared memory, more than the 1000 of a request (modelServer.maxRequestBytes)',
    )
    let open: () => void = () => undefined
    const gate = new Promise<void>((resolve) => (open = resolve))
    const held = Array.from({ length: 8 }, () => asked(1_000, gate))
    await expect(asked(1)).rejects.toMatchObject({ status: 'UNAVAILABLE' })
    open()
    await Promise.all(held)
    await asked(1_000)
  })
})
