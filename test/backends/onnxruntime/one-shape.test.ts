import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { onTestFinished, describe, expect, it } from 'vitest'
import { parseModelConfig } from '../../../src/repository/model-config-text.js'
import { onnxRuntimeBackend } from '../../../src/backends/onnxruntime/onnxruntime-backend.js'
import { counted } from '../../../src/runtime/counted-statistics.js'
import type { LoadedModel } from '../../../src/runtime/loaded-model.js'
import type { ScheduledModel } from '../../../src/runtime/scheduled-model.js'
import { modelMetricsText } from '../../../src/serving/metrics/serving-metrics.js'
import type { Tensor } from '../../../src/tensors/tensor.js'
import { contextOf, fp32, requestOf, scheduled, valuesOf } from '../../support/direct-model.js'
import { echoOnnx } from '../../support/model-repository.js'
import { buildOnnx } from '../../support/onnx-builder.js'
import { nothingIsMissing, gpuWorkers, recordShapes, tellMemory } from '../../support/simulated-gpus.js'
import { adder, controls, mirror } from '../../support/sequence-models.js'
import { recordingLog, silentLog } from '../../support/silent-log.js'
import { tempDir } from '../../support/temp-dir.js'
import { until } from '../../support/until.js'

/** A model behind its scheduler, on the provider that charges for a change of shape; it serves, and sizes of batches may be to come. */
async function serving(
  onnx: Uint8Array,
  config: string,
  log = silentLog(),
  instances = 1,
): Promise<ScheduledModel> {
  const versionDir = join(tempDir(), 'm', '1')
  mkdirSync(versionDir, { recursive: true })
  writeFileSync(join(versionDir, 'model.onnx'), onnx)
  const text = `instance_group { kind: KIND_GPU count: ${instances} } ${config}`
  const context = { ...contextOf('m', parseModelConfig(text, 'config.pbtxt'), versionDir), log }
  const backend = onnxRuntimeBackend({
    providers: ['cuda', 'cpu'],
    devices: [0],
    intraOpThreads: 1,
    workerEntry: gpuWorkers.onnx,
    missing: nothingIsMissing,
  })
  const model = await scheduled(await backend.open(context), context)
  onTestFinished(() => model.stop(5_000))
  return model
}

const isWarm = (model: ScheduledModel) =>
  until('all sizes are warm', () => (model.sizes?.toCome.length ?? 0) === 0)

/** The same once batches have all sizes. */
async function served(...model: Parameters<typeof serving>): Promise<ScheduledModel> {
  const started = await serving(...model)
  await isWarm(started)
  return started
}

const row = (value: number) => [value, -value, value / 2]
const rows = (first: number, count: number) => Array.from({ length: count }, (_, n) => row(first + n)).flat()
/** Sessions that saw more than one shape. */
const oddSessions = (runs: ReturnType<ReturnType<typeof recordShapes>>) => {
  const pairs = new Set(runs.map(({ session, shapes }) => `${session}: ${shapes}`))
  const sessions = [...pairs].map((pair) => pair.split(':')[0])
  return sessions.filter((session, index) => sessions.indexOf(session) !== index)
}
const changes = (runs: ReturnType<ReturnType<typeof recordShapes>>) => runs.filter(({ changed }) => changed)

describe('a model on a provider that charges for a change of shape', () => {
  it('shows each session one shape, from its load on, whatever clients send', async () => {
    const runs = recordShapes()
    const model = await served(
      echoOnnx('float32', ['n', 3]),
      'max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 2000 } model_warmup { name: "w" batch_size: 2 inputs { key: "in0" value { data_type: TYPE_FP32 dims: 3 zero_data: true } } }',
    )
    const atLoad = runs()
    expect(new Set(atLoad.map(({ shapes }) => shapes))).toEqual(new Set(['in0 1x3', 'in0 4x3', 'in0 8x3']))
    expect(changes(atLoad)).toHaveLength(3)
    const ask = async (first: number, count: number) => {
      const [answer] = await model.infer(requestOf([fp32('in0', [count, 3], rows(first, count))]))
      expect(answer?.shape).toEqual([count, 3])
      expect(valuesOf(answer)).toEqual(rows(first, count))
    }
    for (const count of [1, 8, 3, 1, 5]) await ask(count * 100, count)
    await Promise.all([1, 2, 1, 3, 1, 1, 2].map((count, index) => ask(index * 1_000, count)))
    const after = runs()
    expect(after.length).toBeGreaterThan(5)
    expect(changes(after)).toEqual([])
  })

  it.each(['', 'preferred_batch_size: [ 2 ]', 'preferred_batch_size: [ 3, 5 ]'])(
    'shows each session one shape, however many clients ask at once for whatever they like (%s)',
    async (preferred) => {
      const runs = recordShapes()
      // The first of them come while sizes are warmed.
      const model = await serving(
        echoOnnx('float32', ['n', 3]),
        `max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 500 ${preferred} }`,
      )
      const bursts = fc.sample(fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 6 }), 20)
      for (const [at, counts] of bursts.entries())
        await Promise.all(
          counts.map(async (count, index) => {
            const values = rows(at * 100 + index * 10, count)
            const [answer] = await model.infer(requestOf([fp32('in0', [count, 3], values)]))
            expect(valuesOf(answer)).toEqual(values)
          }),
        )
      await isWarm(model)
      const all = runs()
      expect(oddSessions(all), JSON.stringify(bursts)).toEqual([])
      expect(changes(all)).toHaveLength(model.sizes?.warm.length ?? 0)
    },
  )

  it('keeps its throughput while sizes change all the time: no change is charged once they are warm', async () => {
    const runs = recordShapes()
    const model = await served(echoOnnx('float32', ['n', 3]), 'max_batch_size: 8')
    runs()
    const counts = Array.from({ length: 40 }, (_, n) => 1 + ((n * 5) % 8))
    for (const count of counts) await model.infer(requestOf([fp32('in0', [count, 3], rows(0, count))]))
    const ran = runs()
    // As they came, 39 of them would have been charged.
    expect([ran.length, changes(ran)]).toEqual([40, []])
  })

  it('serves with the smallest size, and warms the others one instance after another', async () => {
    const runs = recordShapes()
    const { log, lines } = recordingLog()
    const model = await serving(echoOnnx('float32', ['n', 3]), 'max_batch_size: 8', log, 2)
    expect([model.sizes?.warm.map(({ size }) => size), model.sizes?.toCome]).toEqual([[1], [4, 8]])
    expect(model.recorder.sizes.map(({ size }) => size)).toEqual([1])
    const answers = await Promise.all(
      [10, 20, 30].map((first) => model.infer(requestOf([fp32('in0', [1, 3], rows(first, 1))]))),
    )
    expect(answers.map(([answer]) => valuesOf(answer))).toEqual([10, 20, 30].map((first) => rows(first, 1)))
    await isWarm(model)
    expect(model.recorder.sizes.map(({ size }) => size)).toEqual([1, 4, 8])
    const firstRuns = changes(runs()).map(({ shapes }) => shapes)
    expect(firstRuns).toEqual(['in0 1x3', 'in0 1x3', 'in0 4x3', 'in0 4x3', 'in0 8x3', 'in0 8x3'])
    expect(lines.filter(({ msg }) => msg === 'sizes of batches are warm')).toHaveLength(1)
  })

  it('answers a request that is larger than what is warm: its run is the first of its size', async () => {
    const runs = recordShapes()
    const model = await serving(echoOnnx('float32', ['n', 3]), 'max_batch_size: 8')
    const [answer] = await model.infer(requestOf([fp32('in0', [7, 3], rows(1, 7))]))
    expect(valuesOf(answer)).toEqual(rows(1, 7))
    await isWarm(model)
    expect(changes(runs())).toHaveLength(3)
  })

  it('keeps to the sizes that run where the card has no room for a larger run, and says so', async () => {
    process.env.MOST_ROWS = '4'
    onTestFinished(() => void delete process.env.MOST_ROWS)
    const { log, lines } = recordingLog()
    const model = await served(echoOnnx('float32', ['n', 3]), 'max_batch_size: 8', log)
    expect(model.sizes?.warm.map(({ size }) => size)).toEqual([1, 4])
    const answers = await Promise.all(
      Array.from({ length: 9 }, (_, n) => model.infer(requestOf([fp32('in0', [1, 3], rows(n, 1))]))),
    )
    expect(answers.map(([answer]) => valuesOf(answer))).toEqual(
      Array.from({ length: 9 }, (_, n) => rows(n, 1)),
    )
    expect(lines).toContainEqual(
      expect.objectContaining({
        msg: 'sizes of batches do not run: batches stay smaller',
        sizes: [8],
        reason: expect.stringContaining('out of memory') as string,
      }),
    )
  })

  it('measures what each size takes of the memory of the card, and tells it', async () => {
    tellMemory()
    const { log, lines } = recordingLog()
    const model = await served(echoOnnx('float32', ['n', 3]), 'max_batch_size: 8', log)
    const mib = 1024 ** 2
    const taken = [
      [1, 110],
      [4, 140],
      [8, 180],
    ] as const
    expect(model.recorder.sizes.map(({ size, memoryBytes }) => [size, memoryBytes])).toEqual(
      taken.map(([size, bytes]) => [size, bytes * mib]),
    )
    expect(model.statistics().memory).toEqual([{ type: 'GPU', id: 0, bytes: 430 * mib }])
    const page = await modelMetricsText([counted(model.recorder)])
    for (const [size, bytes] of taken)
      expect(page).toContain(
        `gantry_model_batch_memory_bytes{batch_size="${size}",model="m",version="1"} ${bytes * mib}`,
      )
    expect(lines).toContainEqual(
      expect.objectContaining({
        msg: 'sizes of batches are warm',
        sizes: taken.map(
          ([size, bytes]) => expect.stringMatching(`^${size}: .* ms, ${bytes} MiB$`) as string,
        ),
      }),
    )
  })

  it('moves large inputs, and answers no more bytes than were asked for', async () => {
    const runs = recordShapes()
    const model = await served(echoOnnx('float32', ['n', 16_384]), 'max_batch_size: 4')
    runs()
    for (const count of [1, 3, 4, 2]) {
      const values = Array.from({ length: count * 16_384 }, (_, n) => n % 977)
      const input = { ...fp32('in0', [count, 16_384], values), movable: true } satisfies Tensor
      const [answer] = await model.infer(requestOf([input]))
      expect(answer?.data.buffer.byteLength).toBe(count * 16_384 * 4)
      expect(valuesOf(answer)).toEqual(values)
    }
    expect(changes(runs())).toEqual([])
  })

  it('fills up text as well', async () => {
    const runs = recordShapes()
    const model = await served(echoOnnx('string', ['n', 2]), 'max_batch_size: 4')
    runs()
    for (const words of [
      ['a', 'bcd'],
      ['é', '', 'longer text', 'x', 'y', 'z'],
      ['', ''],
    ]) {
      const data = Buffer.concat(
        words.map((word) => {
          const text = Buffer.from(word)
          return Buffer.concat([Buffer.from(Uint32Array.of(text.length).buffer), text])
        }),
      )
      const input: Tensor = { name: 'in0', datatype: 'BYTES', shape: [words.length / 2, 2], data }
      const [answer] = await model.infer(requestOf([input]))
      expect(answer?.shape).toEqual([words.length / 2, 2])
      expect(Buffer.from(answer!.data).equals(data)).toBe(true)
    }
    expect(changes(runs())).toEqual([])
  })

  it('changes no answer of a model that looks at the whole batch', async () => {
    const column = { type: 'float32', shape: ['n', 1] } as const
    const spread = buildOnnx({
      inputs: [{ name: 'in0', ...column }],
      outputs: [{ name: 'out0', ...column }],
      nodes: [
        { op: 'ReduceMax', inputs: ['in0'], outputs: ['most'], attributes: { axes: [0], keepdims: 1 } },
        { op: 'ReduceMin', inputs: ['in0'], outputs: ['least'], attributes: { axes: [0], keepdims: 1 } },
        { op: 'Sub', inputs: ['most', 'least'], outputs: ['spread'] },
        { op: 'Div', inputs: ['in0', 'spread'], outputs: ['out0'] },
      ],
    })
    const model = await served(spread, 'max_batch_size: 8')
    const [answer] = await model.infer(requestOf([fp32('in0', [3, 1], [2, 4, 6])]))
    expect(valuesOf(answer)).toEqual([0.5, 1, 1.5])
  })

  it('is refused at its load where an output has no row for each of the batch', async () => {
    const collapsed = buildOnnx({
      inputs: [{ name: 'in0', type: 'float32', shape: ['n', 1] }],
      outputs: [{ name: 'out0', type: 'float32', shape: ['m', 1] }],
      nodes: [
        { op: 'ReduceMax', inputs: ['in0'], outputs: ['out0'], attributes: { axes: [0], keepdims: 1 } },
      ],
    })
    for (const batching of ['', 'dynamic_batching { }'])
      await expect(served(collapsed, `max_batch_size: 8 ${batching}`)).rejects.toThrow(
        'model "m": onnx runtime error: output \'out0\' is [1, 1] for a batch of 4: its first dimension is not the batch',
      )
    const model = await served(
      collapsed,
      'max_batch_size: 8 input { name: "in0" data_type: TYPE_FP32 dims: -1 }',
    )
    await expect(model.infer(requestOf([fp32('in0', [2, 1], [2, 3])]))).rejects.toThrow('is not the batch')
  })

  it('leaves a model without a batch dimension as it is', async () => {
    const runs = recordShapes()
    const model = await served(echoOnnx('float32', ['n', 3]), 'max_batch_size: 0')
    const [answer] = await model.infer(requestOf([fp32('in0', [2, 3], rows(1, 2))]))
    expect(valuesOf(answer)).toEqual(rows(1, 2))
    expect(runs().at(-1)?.shapes).toBe('in0 2x3')
  })

  it("R44: counts and tells the runs that its changes make slow, where shapes are the client's", async () => {
    const { log, lines } = recordingLog()
    const model = await served(
      echoOnnx('float32', ['n', 'm']),
      'max_batch_size: 4 input { name: "in0" data_type: TYPE_FP32 dims: -1 } output { name: "out0" data_type: TYPE_FP32 dims: -1 }',
      log,
    )
    const ask = (values: number) =>
      model.infer(
        requestOf([
          fp32(
            'in0',
            [1, values],
            Array.from({ length: values }, () => 1),
          ),
        ]),
      )
    for (let run = 0; run < 8; run += 1) await ask(3)
    expect(model.recorder.slowRuns).toBe(0)
    await ask(5)
    expect(model.recorder.slowRuns).toBe(1)
    await ask(3)
    expect(model.recorder.slowRuns).toBe(2)
    const told = lines.filter(({ msg }) => String(msg).startsWith('a run took more than ten times'))
    expect(told).toHaveLength(1)
    expect(told[0]).toMatchObject({
      model: 'm',
      items: 1,
      slowRuns: 1,
      cause: 'first run of its session with these shapes',
    })
  })
})

describe.each(['direct { }', 'oldest { max_candidate_sequences: 4 }'])(
  'a sequence model there, %s',
  (strategy) => {
    const batching = (inner: string) =>
      `max_batch_size: 4 sequence_batching { max_sequence_idle_microseconds: 60000000 ${inner} ${strategy} }`
    const state =
      'state { input_name: "SUM_IN" output_name: "SUM_OUT" data_type: TYPE_FP32 dims: 1 initial_state { data_type: TYPE_FP32 dims: 1 zero_data: true } }'
    const send = async (model: LoadedModel, id: string, value: number, flags: object = {}) => {
      const sequence = { id, start: false, end: false, ...flags }
      const answers = await model.infer(requestOf([fp32('INPUT', [1, 1], [value])], { sequence }))
      return answers.flatMap(valuesOf)
    }

    it('keeps states apart in one shape a session, warm from its load on', async () => {
      const runs = recordShapes()
      const model = await served(adder, batching(state))
      const shapes = ['INPUT 1x1, SUM_IN 1x1', 'INPUT 4x1, SUM_IN 4x1']
      expect([...new Set(runs().map((run) => run.shapes))]).toEqual(shapes)
      const start = { start: true }
      expect(await send(model, 'a', 1, start)).toEqual([1])
      const two = await Promise.all([
        send(model, 'b', 10, start),
        send(model, 'a', 2),
        send(model, 'c', 100, start),
      ])
      expect(two.flat()).toEqual([10, 3, 100])
      expect((await Promise.all([send(model, 'c', 5), send(model, 'a', 3)])).flat()).toEqual([105, 6])
      expect(changes(runs())).toEqual([])
    })

    it('shows each session one shape, however sequences come and go', async () => {
      const runs = recordShapes()
      const model = await served(adder, batching(state))
      const many = fc.sample(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 }), 6)
      let id = 0
      for (const values of many)
        await Promise.all(
          // One behind the other in each sequence, all sequences side by side.
          values.map(async (last) => {
            const own = `s${(id += 1)}`
            for (let value = 1; value <= last; value += 1) {
              const [sum] = await send(model, own, value, { start: value === 1, end: value === last })
              expect(sum).toBe((value * (value + 1)) / 2)
            }
          }),
        )
      expect(oddSessions(runs()), JSON.stringify(many)).toEqual([])
    })

    it('tells the model that rows which were added have no sequence', async () => {
      // The sum over the batch of READY, beside what each row was told.
      const counting = buildOnnx({
        inputs: ['INPUT', 'START', 'END', 'READY']
          .map((name) => ({ name, type: 'float32' as const, shape: ['n', 1] }))
          .concat({ name: 'CORRID', type: 'uint64' as never, shape: ['n', 1] }),
        outputs: ['OUTPUT', 'E', 'S', 'ID'].map((name) => ({
          name,
          type: 'float32' as const,
          shape: ['n', 1],
        })),
        constants: [{ name: 'none', shape: [1], data: Float32Array.of(0) }],
        nodes: [
          { op: 'ReduceSum', inputs: ['READY'], outputs: ['ready'], attributes: { keepdims: 1 } },
          { op: 'Mul', inputs: ['INPUT', 'none'], outputs: ['zero'] },
          { op: 'Add', inputs: ['zero', 'ready'], outputs: ['OUTPUT'] },
          { op: 'Identity', inputs: ['START'], outputs: ['S'] },
          { op: 'Identity', inputs: ['END'], outputs: ['E'] },
          { op: 'Cast', inputs: ['CORRID'], outputs: ['ID'], attributes: { to: 1 } },
        ],
      })
      const model = await served(counting, batching(controls))
      expect(await send(model, '7', 1, { start: true })).toEqual([1, 0, 1, 7])
      expect(await send(model, '7', 1, { end: true })).toEqual([1, 1, 0, 7])
    })

    it('hands controls through', async () => {
      const model = await served(mirror, batching(controls))
      expect(await send(model, '9', 4, { start: true })).toEqual([4, 1, 0, 1, 9])
    })
  },
)
