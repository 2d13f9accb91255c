import { setTimeout as pause } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { memoryUse } from '../../../src/lifecycle/memory-use.js'
import { CodecPool, type CodecPoolOptions } from '../../../src/api/codec/codec-pool.js'
import { jsonOf, textsByGrpc } from '../../support/large-requests.js'

const never = new AbortController().signal

function opened(options: Partial<CodecPoolOptions> = {}): CodecPool {
  const pool = new CodecPool({ maxBytes: 100_000_000, ...options })
  onTestFinished(() => pool.close())
  return pool
}

function readBody(pool: CodecPool, body: Buffer, signal = never) {
  const headerBytes = body.byteLength
  return pool.run(
    'inferBody',
    body,
    (moved) => ({ body: moved, headerBytes, model: 'm', version: '' }),
    signal,
  )
}

it('gives back a request whose tensors can be moved on, and keeps nothing of its body here', async () => {
  const body = jsonOf('FP32', '0.5', 100_000)
  const { request } = await readBody(opened(), body)
  const [input] = request.inputs
  expect(input).toMatchObject({ name: 'in0', datatype: 'FP32', shape: [100_000], movable: true })
  expect([...new Set(new Float32Array(input?.data.buffer as ArrayBuffer))]).toEqual([0.5])
  expect(body.byteLength).toBe(0)
})

it('tells by which number the system knows its threads', async () => {
  const pool = opened({ threads: 1 })
  expect(pool.threads).toEqual([])
  await readBody(pool, jsonOf('FP32', '0.5', 100_000))
  const [thread] = pool.threads
  expect(memoryUse.pageFaults(thread ?? 0)).toBeGreaterThan(0)
})

it('leaves alone a buffer in which something else is', async () => {
  const body = jsonOf('FP32', '0.5', 1_000)
  const among = Buffer.concat([Buffer.alloc(100_000), body, Buffer.alloc(100_000)])
  const { request } = await readBody(opened(), among.subarray(100_000, 100_000 + body.byteLength))
  expect(request.inputs[0]?.data.byteLength).toBe(4_000)
  expect(among.byteLength).toBe(200_000 + body.byteLength)
})

it('throws what the thread throws, with its status', async () => {
  await expect(readBody(opened(), jsonOf('INT8', '300', 100))).rejects.toMatchObject({
    status: 'INVALID_ARG',
    message: "Unable to parse 'data': 300 is no INT8",
  })
  const pool = opened()
  const broken = Buffer.alloc(100_000, 255)
  await expect(pool.run('inferMessage', broken, (bytes) => ({ bytes }), never)).rejects.toMatchObject({
    name: 'ProtoError',
  })
})

it('reads messages, and tells whose they are with what is wrong', async () => {
  const pool = opened()
  const read = await pool.run('inferMessage', textsByGrpc('m', 50_000), (bytes) => ({ bytes }), never)
  expect(read).toMatchObject({ model: 'm', read: { inputs: [{ shape: [50_000], checked: true }] } })
})

it('S12: ends what a client waits for no more, in the queue and in a thread, and reads on', async () => {
  const pool = opened({ threads: 1 })
  const [first, second] = [new AbortController(), new AbortController()]
  const running = readBody(pool, jsonOf('BYTES', '"A"', 8_000_000), first.signal)
  const waiting = readBody(pool, jsonOf('FP32', '1', 1_000), second.signal)
  const last = readBody(pool, jsonOf('FP32', '1', 1_000))
  second.abort()
  first.abort()
  const cancelled = { status: 'CANCELLED', reason: 'CANCELED' }
  await expect(waiting).rejects.toMatchObject(cancelled)
  await expect(running).rejects.toMatchObject(cancelled)
  expect((await last).request.inputs).toHaveLength(1)
})

it('refuses more bytes at once than it may have, and takes them when there is room', async () => {
  const body = () => jsonOf('FP32', '1', 100_000)
  const pool = opened({ threads: 1, maxBytes: body().byteLength })
  const first = readBody(pool, body())
  await expect(readBody(pool, body())).rejects.toMatchObject({ status: 'UNAVAILABLE', reason: 'REJECTED' })
  await first
  await readBody(pool, body())
})

it('ends a thread that takes too long, and refuses what it did', async () => {
  const pool = opened({ jobAtMostMs: 1 })
  await expect(readBody(pool, jsonOf('BYTES', '"A"', 4_000_000))).rejects.toMatchObject({
    status: 'INTERNAL',
    message: 'the request takes too long to read',
  })
})

it('goes on after a thread that ended, and starts one again after a rest', async () => {
  const pool = opened({ idleMs: 1 })
  for (let i = 0; i < 3; i++) {
    await readBody(pool, jsonOf('FP32', '1', 1_000))
    await pause(20)
  }
})

it('takes nothing when it is closed', async () => {
  const pool = opened()
  const running = readBody(pool, jsonOf('BYTES', '"A"', 4_000_000))
  pool.close()
  await expect(running).rejects.toMatchObject({ status: 'UNAVAILABLE' })
  await expect(readBody(pool, jsonOf('FP32', '1', 10))).rejects.toMatchObject({ status: 'UNAVAILABLE' })
})

it('refuses what came while no thread can be started, and keeps nothing of it', async () => {
  const pool = opened({ entry: 'no path', maxBytes: 1_000_000 })
  const read = () => readBody(pool, jsonOf('FP32', '0.5', 100_000))
  const answers = await Promise.allSettled([read(), read()])
  expect(answers).toMatchObject([{ status: 'rejected' }, { status: 'rejected' }])
  // Bytes of the first two would be too many with this one.
  await expect(read()).rejects.not.toMatchObject({ status: 'UNAVAILABLE' })
})
