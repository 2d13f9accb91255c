import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { TraceFiles } from '../../../src/runtime/tracing/trace-files.js'
import { Tracer } from '../../../src/runtime/tracing/tracer.js'
import { fp32, requestOf } from '../../support/direct-model.js'
import { buildOnnx } from '../../support/onnx-builder.js'
import { addModel } from '../../support/onnx-models.js'
import { serveRepository } from '../../support/real-repository.js'
import { silentLog } from '../../support/silent-log.js'
import { tempDir } from '../../support/temp-dir.js'

type Entry = Readonly<{
  id: number
  model_name?: string
  parent_id?: number
  timestamps?: readonly Readonly<{ name: string; ns: number }>[]
}>

function setUp() {
  const dir = tempDir()
  const files = new TraceFiles(dir, 1_000_000, silentLog())
  const written = async (): Promise<readonly (readonly Entry[])[]> => {
    await files.written()
    const names = readdirSync(dir).sort()
    return names.map((name) => JSON.parse(readFileSync(join(dir, name), 'utf8')) as Entry[])
  }
  return { tracer: new Tracer(files), written }
}

/** Sends requests, and gives the places of those that were traced, from 1. */
function traced(tracer: Tracer, count: number, model = 'm'): readonly number[] {
  return Array.from({ length: count }, (_, i) => i + 1).filter(() => {
    const begun = tracer.begin(model, '1', '')
    begun?.done()
    return begun !== undefined
  })
}

const on = { trace_level: ['TIMESTAMPS'] }

describe('sampling', () => {
  it('traces nothing before it is asked to', () => {
    expect(traced(setUp().tracer, 2_000)).toEqual([])
  })

  it('traces every trace_rate-th request until trace_count are taken, and tells how many are left', async () => {
    const { tracer, written } = setUp()
    tracer.change('', { ...on, trace_rate: ['3'], trace_count: ['2'] })
    expect(traced(tracer, 5)).toEqual([3])
    expect(tracer.settings('').trace_count).toEqual(['1'])
    expect(await written()).toEqual([])
    expect(traced(tracer, 10)).toEqual([1])
    expect((await written()).map((entries) => entries.map(({ id }) => id))).toEqual([[1, 2]])
    expect(tracer.settings('').trace_count).toEqual(['0'])
    tracer.change('', { trace_count: ['1'] })
    expect(traced(tracer, 10)).toEqual([3])
  })

  it('writes a file for every log_frequency traces, and the rest when the settings change', async () => {
    const { tracer, written } = setUp()
    tracer.change('', { ...on, trace_rate: ['1'], log_frequency: ['2'] })
    traced(tracer, 5)
    expect((await written()).map(({ length }) => length)).toEqual([2, 2])
    tracer.change('', { trace_level: undefined })
    expect((await written()).map(({ length }) => length)).toEqual([2, 2, 1])
    expect(traced(tracer, 5)).toEqual([])
  })

  it('writes a trace that is under way when the settings change', async () => {
    const { tracer, written } = setUp()
    tracer.change('', { ...on, trace_rate: ['1'] })
    const begun = tracer.begin('m', '1', '')
    tracer.change('', { trace_level: undefined })
    begun?.done()
    expect((await written()).map(({ length }) => length)).toEqual([1])
  })

  it('holds no more than a mebibyte in memory', async () => {
    const { tracer, written } = setUp()
    tracer.change('', { ...on, trace_rate: ['1'] })
    for (let i = 0; i < 20; i++) tracer.begin('m', '1', 'x'.repeat(100_000))?.done()
    expect((await written()).length).toBe(1)
  })

  it('follows the settings of the server, but for what is set for the model', () => {
    const { tracer } = setUp()
    tracer.change('m', { trace_rate: ['2'] })
    expect(traced(tracer, 4)).toEqual([])
    tracer.change('', on)
    expect([traced(tracer, 4), traced(tracer, 4, 'other')]).toEqual([[2, 4], []])
    tracer.change('m', { trace_rate: undefined })
    expect(tracer.settings('m')).toEqual(tracer.settings(''))
  })

  it.each([
    [{ ...on, trace_rate: ['0'] }, 'Attempting to set invalid trace setting :sample rate must be non-zero'],
    [{ trace_level: ['TIMESTAMPS', 'TENSORS'] }, "trace level 'TENSORS' is not supported"],
    [{ trace_file: ['/tmp/x'] }, 'trace file location can not be updated through network protocol'],
    [{ trace_mode: ['opentelemetry'] }, 'trace mode can not be updated through network protocol'],
  ])('refuses %j', (changes, problem) => {
    const { tracer } = setUp()
    expect(() => tracer.change('', changes)).toThrow(problem)
    expect(tracer.settings('').trace_level).toEqual(['OFF'])
  })

  it('refuses to trace where there is no folder for it', () => {
    const problem = 'Attempting to set invalid trace setting :trace file name is not given'
    expect(() => new Tracer().change('', on)).toThrow(problem)
  })
})

describe('the trace of a request', () => {
  const tensor = (name: string) => ({ name, type: 'float32', shape: ['batch', 2] }) as const
  const double = buildOnnx({
    inputs: [tensor('x')],
    outputs: [tensor('y')],
    nodes: [{ op: 'Add', inputs: ['x', 'x'], outputs: ['y'] }],
  })

  async function serve() {
    const repository = tempDir()
    addModel(repository, 'double', { onnx: double, config: 'max_batch_size: 4' })
    addModel(repository, 'outer', {
      config: `platform: "ensemble" max_batch_size: 4
        input { name: "in" data_type: TYPE_FP32 dims: [ 2 ] } output { name: "out" data_type: TYPE_FP32 dims: [ 2 ] }
        ensemble_scheduling { step { model_name: "double" input_map { key: "x" value: "in" } output_map { key: "y" value: "out" } } }`,
    })
    const { tracer, written } = setUp()
    const server = await serveRepository(repository, { tracer })
    server.settings.setTrace('', { ...on, trace_rate: ['1'] })
    const ask = async (model: string, input: string, protocol: 'HTTP' | 'GRPC', size = 2) => {
      const request = requestOf([fp32(input, [1, size], Array(size).fill(1))], { model, id: 'r' })
      const { onSent } = await server.infer({ ...request, arrival: { protocol, startedMs: 1, endedMs: 2 } })
      onSent?.(3)
    }
    const traces = async () => {
      server.settings.setTrace('', { trace_level: undefined })
      return (await written()).flat()
    }
    return { ask, traces }
  }

  const times = (entries: readonly Entry[], id: number) =>
    entries.flatMap((entry) => (entry.id === id ? (entry.timestamps ?? []) : []))
  const run = ['COMPUTE_START', 'COMPUTE_INPUT_END', 'COMPUTE_OUTPUT_START', 'COMPUTE_END', 'REQUEST_END']

  it('has the times of Triton, in their order', async () => {
    const { ask, traces } = await serve()
    await ask('double', 'x', 'HTTP')
    const entries = await traces()
    expect(entries[0]).toEqual({ id: 1, model_name: 'double', model_version: 1, request_id: 'r' })
    expect(times(entries, 1).map(({ name }) => name)).toEqual([
      ...['HTTP_RECV_START', 'HTTP_RECV_END', 'REQUEST_START', 'QUEUE_START', ...run],
      ...['INFER_RESPONSE_COMPLETE', 'HTTP_SEND_START', 'HTTP_SEND_END'],
    ])
    const inside = times(entries, 1).slice(2, -3)
    expect(inside).toEqual([...inside].sort((a, b) => a.ns - b.ns))
  })

  it('has the steps of an ensemble under it', async () => {
    const { ask, traces } = await serve()
    await ask('outer', 'in', 'GRPC')
    const entries = await traces()
    expect(entries.filter(({ model_name }) => model_name !== undefined)).toEqual([
      { id: 1, model_name: 'outer', model_version: 1, request_id: 'r' },
      { id: 2, model_name: 'double', model_version: 1, request_id: 'r', parent_id: 1 },
    ])
    expect(times(entries, 1).map(({ name }) => name)).toEqual([
      ...['GRPC_WAITREAD_START', 'GRPC_WAITREAD_END', 'REQUEST_START', 'QUEUE_START', 'REQUEST_END'],
      ...['INFER_RESPONSE_COMPLETE', 'GRPC_SEND_START', 'GRPC_SEND_END'],
    ])
    expect(times(entries, 2).map(({ name }) => name)).toEqual(['REQUEST_START', 'QUEUE_START', ...run])
  })

  it('ends with a request that fails', async () => {
    const { ask, traces } = await serve()
    await expect(ask('double', 'x', 'HTTP', 3)).rejects.toThrow('unexpected shape')
    expect(times(await traces(), 1).at(-1)?.name).toBe('REQUEST_END')
  })
})
