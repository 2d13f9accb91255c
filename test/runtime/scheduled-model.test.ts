import { describe, expect, it } from 'vitest'
import { buildOnnx } from '../support/onnx-builder.js'
import { floats, fp32, inferRequest, scheduledModel } from '../support/scheduled-model.js'
import { recordingLog } from '../support/silent-log.js'

/** `OUTPUT0 = INPUT0 + INPUT1`, 16 wide. */
const adder = buildOnnx({
  inputs: ['INPUT0', 'INPUT1'].map((name) => ({ name, type: 'float32', shape: ['n', 16] })),
  outputs: [{ name: 'OUTPUT0', type: 'float32', shape: ['n', 16] }],
  nodes: [{ op: 'Add', inputs: ['INPUT0', 'INPUT1'], outputs: ['OUTPUT0'] }],
})

const input = (name: string, items = 1, value = 1) =>
  fp32(name, [items, 16], Array<number>(items * 16).fill(value))
const both = (items = 1, value = 1) => [input('INPUT0', items, value), input('INPUT1', items, value)]
const oneInstance = 'max_batch_size: 4 instance_group { count: 1 kind: KIND_CPU }'

describe('a scheduled model', () => {
  const wide = fp32('INPUT0', [1, 8], Array<number>(8).fill(1))
  it.each([
    [
      [input('INPUT0')],
      "[request id: <id_unknown>] expected 2 inputs but got 1 inputs for model 'm'. Got input(s) ['INPUT0'], but missing required input(s) ['INPUT1']. Please provide all required input(s).",
    ],
    [[...both(), input('extra')], "unexpected inference input 'extra' for model 'm'"],
    [both(5), "[request id: <id_unknown>] inference request batch-size must be <= 4 for 'm'"],
    [
      [input('INPUT0', 2), input('INPUT1', 1)],
      "[request id: <id_unknown>] input 'INPUT1' batch size does not match other inputs for 'm'",
    ],
    [
      [wide, input('INPUT1')],
      "unexpected shape for input 'INPUT0' for model 'm'. Expected [-1,16], got [1,8]. NOTE: Setting a non-zero max_batch_size",
    ],
    [
      [{ ...input('INPUT0'), datatype: 'INT32' as const }, input('INPUT1')],
      "[request id: <id_unknown>] inference input 'INPUT0' data-type is 'INT32', but model 'm' expects 'FP32'",
    ],
    [
      [{ ...input('INPUT0'), data: new Uint8Array(60) }, input('INPUT1')],
      "[request id: <id_unknown>] input byte size mismatch for input 'INPUT0' for model 'm'. Expected 64, got 60",
    ],
    [
      [input('INPUT0'), input('INPUT0')],
      "[request id: <id_unknown>] input 'INPUT0' already exists in request",
    ],
  ])('refuses a request in the words of Triton, %#', async (inputs, message) => {
    const model = await scheduledModel(adder, oneInstance)
    await expect(model.infer(inferRequest(inputs))).rejects.toMatchObject({
      status: 'INVALID_ARG',
      reason: 'OTHER',
      message: expect.stringContaining(message) as string,
    })
    expect(model.statistics()).toMatchObject({ inferenceCount: 0, inference: { fail: { count: 1 } } })
  })

  it('refuses an output that it does not have', async () => {
    const model = await scheduledModel(adder, oneInstance)
    const outputs = [{ name: 'OUTPUT9', classification: 0 }]
    await expect(model.infer(inferRequest(both(), { outputs, id: '7' }))).rejects.toThrow(
      "unexpected inference output 'OUTPUT9' for model 'm'",
    )
  })

  const waiting = (policy: string) =>
    `${oneInstance} dynamic_batching { max_queue_delay_microseconds: 60000000 ${policy} }`

  it('says that the queue is full, and counts it REJECTED', async () => {
    const model = await scheduledModel(adder, waiting('default_queue_policy { max_queue_size: 2 }'))
    const kept = Promise.allSettled([model.infer(inferRequest(both())), model.infer(inferRequest(both()))])
    await expect(model.infer(inferRequest(both()))).rejects.toMatchObject({
      status: 'UNAVAILABLE',
      reason: 'REJECTED',
      message: '[request id: <id_unknown>] Exceeds maximum queue size',
    })
    expect(model.recorder.failures.REJECTED).toBe(1)
    expect(model.recorder.pending).toBe(2)
    await model.stop(0)
    expect(await kept).toMatchObject([
      { reason: { status: 'UNAVAILABLE' } },
      { reason: { status: 'UNAVAILABLE' } },
    ])
  })

  it('says that a request waited too long', async () => {
    const model = await scheduledModel(
      adder,
      waiting('default_queue_policy { default_timeout_microseconds: 60000000 allow_timeout_override: true }'),
    )
    await expect(model.infer(inferRequest(both(), { timeoutUs: 1_000 }))).rejects.toMatchObject({
      status: 'UNAVAILABLE',
      reason: 'REJECTED',
      message: 'Request timeout expired',
    })
  })

  it('lets a request go whose client has gone, and counts it CANCELED', async () => {
    const model = await scheduledModel(adder, waiting(''))
    const abort = new AbortController()
    const answer = model.infer(inferRequest(both(), { signal: abort.signal }))
    abort.abort()
    await expect(answer).rejects.toMatchObject({ status: 'CANCELLED', reason: 'CANCELED' })
    await expect(model.infer(inferRequest(both(), { signal: abort.signal }))).rejects.toMatchObject({
      reason: 'CANCELED',
    })
    expect(model.recorder.failures.CANCELED).toBe(2)
    expect(model.recorder.pending).toBe(0)
    const rest = [1, 2, 3, 4].map((value) => model.infer(inferRequest(both(1, value))))
    expect((await Promise.all(rest)).map(([output]) => floats(output!)[0])).toEqual([2, 4, 6, 8])
  })

  it('finishes what it has when it closes, and refuses the rest', async () => {
    const model = await scheduledModel(adder, oneInstance)
    const answers = Array.from({ length: 20 }, () => model.infer(inferRequest(both())))
    const closed = model.stop(10_000)
    await expect(model.infer(inferRequest(both()))).rejects.toMatchObject({ status: 'UNAVAILABLE' })
    expect((await Promise.all(answers)).length).toBe(20)
    await closed
    expect(model.statistics().inference.success.count).toBe(20)
  })

  it('leaves batching that nobody wrote off only with a word in the log', async () => {
    const { log, lines } = recordingLog()
    const model = await scheduledModel(adder, 'max_batch_size: 4', log)
    const told = lines.some((line) => String(line.msg).includes('automatic batching left off'))
    expect(told).toBe(model.config.dynamic_batching === undefined)
    const written = await scheduledModel(adder, 'max_batch_size: 4 dynamic_batching { }')
    expect(written.config.dynamic_batching).toBeDefined()
  })
})
