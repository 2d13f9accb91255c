import { describe, expect, it } from 'vitest'
import type { InferRequest } from '../../src/runtime/infer.js'
import type { ScheduledModel } from '../../src/runtime/scheduled-model.js'
import { floats, fp32, inferRequest, scheduledModel } from '../support/scheduled-model.js'
import { adder, controls, mirror } from '../support/sequence-models.js'

const state =
  'state { input_name: "SUM_IN" output_name: "SUM_OUT" data_type: TYPE_FP32 dims: 1 initial_state { data_type: TYPE_FP32 dims: 1 zero_data: true } }'

const config = (batching: string, instances = 1) =>
  `max_batch_size: 4 instance_group { kind: KIND_CPU count: ${instances} } sequence_batching { max_sequence_idle_microseconds: 60000000 ${batching} }`

type Flags = Readonly<{ start?: boolean; end?: boolean }>

function request(id: string, value: number, { start = false, end = false }: Flags = {}): InferRequest {
  return inferRequest([fp32('INPUT', [1, 1], [value])], { sequence: { id, start, end } })
}

async function values(model: ScheduledModel, ...sent: readonly InferRequest[]): Promise<number[][]> {
  const answers = await Promise.all(sent.map((one) => model.infer(one)))
  return answers.map((outputs) => outputs.map((tensor) => floats(tensor)[0]!))
}

describe.each(['direct { }', 'oldest { max_candidate_sequences: 4 }'])('sequences, %s', (strategy) => {
  it('tells the model start, end, ready and id of each request, and hides them from clients', async () => {
    const model = await scheduledModel(mirror, config(`${controls} ${strategy}`))
    expect(model.inputs.map(({ name }) => name)).toEqual(['INPUT'])
    const answers = await values(
      model,
      request('7', 1, { start: true }),
      request('8', 2, { start: true }),
      request('7', 3),
      request('7', 4, { end: true }),
      request('8', 5, { end: true }),
    )
    expect(answers).toEqual([
      [1, 1, 0, 1, 7],
      [2, 1, 0, 1, 8],
      [3, 0, 0, 1, 7],
      [4, 0, 1, 1, 7],
      [5, 0, 1, 1, 8],
    ])
  })

  it('keeps the state of each sequence apart, and starts anew', async () => {
    const model = await scheduledModel(adder, config(`${state} ${strategy}`, 2))
    expect(model.outputs.map(({ name }) => name)).toEqual(['OUTPUT'])
    const first = await values(
      model,
      request('a', 1, { start: true }),
      request('b', 10, { start: true }),
      request('a', 2),
      request('b', 20),
      request('a', 3, { end: true }),
      request('b', 30, { end: true }),
    )
    expect(first.flat()).toEqual([1, 10, 3, 30, 6, 60])
    expect(await values(model, request('a', 5, { start: true, end: true }))).toEqual([[5]])
    expect(model.recorder.pending).toBe(0)
  })

  it('runs more sequences than there are slots, one after another', async () => {
    const model = await scheduledModel(adder, config(`${state} ${strategy}`))
    const ids = Array.from({ length: 11 }, (_, index) => String(index + 1))
    const sent = ids.flatMap((id) => [
      request(id, Number(id), { start: true }),
      request(id, 1),
      request(id, 1, { end: true }),
    ])
    expect((await values(model, ...sent)).flat()).toEqual(
      ids.flatMap((id) => [Number(id), Number(id) + 1, Number(id) + 2]),
    )
  })

  it.each([
    [
      'without an id',
      inferRequest([fp32('INPUT', [1, 1], [1])]),
      "inference request to model 'm' must specify a non-zero or non-empty correlation ID",
    ],
    [
      'that does not start',
      request('9', 1),
      "inference request for sequence 9 to model 'm' must specify the START flag on the first request of the sequence",
    ],
    [
      'of several items',
      { ...request('9', 1, { start: true }), inputs: [fp32('INPUT', [2, 1], [1, 1])] },
      "inference request to model 'm' must specify batch-size 1 due to requirements of sequence batcher",
    ],
    [
      'of several items without an id',
      { ...inferRequest([]), id: 'q', inputs: [fp32('INPUT', [2, 1], [1, 1])] },
      "inference request to model 'm' must specify batch-size 1 due to requirements of sequence batcher",
    ],
  ])('refuses a request %s', async (_, sent, message) => {
    const model = await scheduledModel(adder, config(`${state} ${strategy}`))
    await expect(model.infer(sent)).rejects.toMatchObject({
      status: 'INVALID_ARG',
      message,
    })
  })
})

describe('sequences', () => {
  it('gives the slot of a sequence that sends nothing to one that waits', async () => {
    const model = await scheduledModel(
      adder,
      `max_batch_size: 1 instance_group { kind: KIND_CPU count: 1 } sequence_batching { max_sequence_idle_microseconds: 20000 ${state} }`,
    )
    await model.infer(request('1', 1, { start: true }))
    expect(await values(model, request('2', 2, { start: true }))).toEqual([[2]])
    await expect(model.infer(request('1', 1))).rejects.toThrow('START flag')
  })

  it('batches sequences in their places', async () => {
    const model = await scheduledModel(
      adder,
      config(`${state} direct { max_queue_delay_microseconds: 60000000 minimum_slot_utilization: 1 }`),
    )
    const sent = ['1', '2', '3', '4'].map((id) => request(id, Number(id), { start: true }))
    expect((await values(model, ...sent)).flat()).toEqual([1, 2, 3, 4])
    expect(model.statistics()).toMatchObject({ executionCount: 1, inferenceCount: 4 })
  })

  const start = 'kind: CONTROL_SEQUENCE_START'
  const kept = 'state { input_name: "SUM_IN" output_name: "SUM_OUT"'
  it.each([
    [
      'a control that the model has not',
      mirror,
      controls.replace('"START"', '"BEGIN"'),
      'the model has no input "BEGIN"',
    ],
    [
      'a control of another type',
      mirror,
      controls.replace(`${start} fp32_false_true`, `${start} int32_false_true`),
      'control_input "START" is float32 [n, 1] in the model, but TYPE_INT32 is expected',
    ],
    [
      'an id of another type',
      mirror,
      controls.replace('TYPE_UINT64', 'TYPE_INT32'),
      'control_input "CORRID" is uint64 [n, 1] in the model, but TYPE_INT32 is expected',
    ],
    [
      'a state input that the model has not',
      adder,
      state.replace('SUM_IN', 'TOTAL'),
      'the model has no input "TOTAL"',
    ],
    [
      'a state output that the model has not',
      adder,
      state.replace('SUM_OUT', 'TOTAL'),
      'the model has no output "TOTAL"',
    ],
    [
      'a state of other dims',
      adder,
      `${kept} data_type: TYPE_FP32 dims: 5 }`,
      'input "SUM_IN" is float32 [n, 1] in the model, but TYPE_FP32 [-1, 5] is expected',
    ],
    [
      'a state of another type',
      adder,
      `${kept} data_type: TYPE_INT32 dims: 1 }`,
      'input "SUM_IN" is float32 [n, 1] in the model, but TYPE_INT32 [-1, 1] is expected',
    ],
    [
      'a state whose file is not there',
      adder,
      `${kept} data_type: TYPE_FP32 dims: 1 initial_state { data_type: TYPE_FP32 dims: 1 data_file: "gone" } }`,
      'state "SUM_IN" has data_file "gone": there is no file',
    ],
  ])('refuses %s', async (_, onnx, batching, message) => {
    await expect(scheduledModel(onnx, config(`${batching} direct { }`))).rejects.toThrow(message)
  })

  it('refuses a warm-up whose file is not there', async () => {
    const warmUp =
      'model_warmup { name: "w" batch_size: 1 inputs { key: "INPUT" value { data_type: TYPE_FP32 dims: 1 input_data_file: "gone" } } }'
    await expect(scheduledModel(adder, `${config(`${state} direct { }`)} ${warmUp}`)).rejects.toThrow(
      'model_warmup "w", input "INPUT": there is no file',
    )
  })
})
