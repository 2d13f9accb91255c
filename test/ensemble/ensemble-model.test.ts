import { describe, expect, it } from 'vitest'
import { parseModelConfig } from '../../src/repository/model-config-text.js'
import { createEnsembleModel } from '../../src/ensemble/create-ensemble-model.js'
import type { InferRequest } from '../../src/runtime/infer.js'
import type { LoadedModel } from '../../src/runtime/loaded-model.js'
import { ServingError } from '../../src/tensors/serving-error.js'
import type { Tensor, TensorSpec } from '../../src/tensors/tensor.js'
import { directModel, fp32, plainModel, requestOf, spec, valuesOf } from '../support/direct-model.js'
import { silentLog } from '../support/silent-log.js'

type Maps = Readonly<Record<string, string>>
const maps = (kind: 'input_map' | 'output_map', entries: Maps) =>
  Object.entries(entries)
    .map(([key, value]) => `${kind} { key: "${key}" value: "${value}" }`)
    .join(' ')
const step = (model: string, inputs: Maps, outputs: Maps, version = -1) =>
  `step { model_name: "${model}" model_version: ${version} ${maps('input_map', inputs)} ${maps('output_map', outputs)} }`

/** An ensemble from `in` to `out`, both FP32 [2]. */
function ensembleOf(steps: readonly string[], models: readonly LoadedModel[], more = '', io = 'dims: [ 2 ]') {
  const config = parseModelConfig(
    `name: "e" platform: "ensemble" ${more}
     input { name: "in" data_type: TYPE_FP32 ${io} }
     output { name: "out" data_type: TYPE_FP32 ${io} }
     ensemble_scheduling { ${steps.join('\n')} }`,
    'config.pbtxt',
  )
  const find = (name: string) => models.find((model) => model.name === name)
  return createEnsembleModel(
    { name: 'e', version: '1', config, versionDir: '', labels: new Map() },
    { find, serve: directModel, log: silentLog() },
  )
}

/** `y = f(x)`, after `gate` if there is one. */
function mapped(name: string, f: (x: number) => number, over: Partial<LoadedModel> = {}): LoadedModel {
  return plainModel({
    name,
    inputs: [spec('x', [2])],
    outputs: [spec('y', [2])],
    infer: ({ inputs }) => Promise.resolve([fp32('y', [2], valuesOf(inputs[0]).map(f))]),
    ...over,
  })
}

const sum = plainModel({
  name: 'sum',
  inputs: [spec('a', [2]), spec('b', [2])],
  outputs: [spec('y', [2])],
  infer: ({ inputs }) => {
    const [a, b] = [
      valuesOf(inputs.find((i) => i.name === 'a')),
      valuesOf(inputs.find((i) => i.name === 'b')),
    ]
    return Promise.resolve([
      fp32(
        'y',
        [2],
        a.map((value, index) => value + (b[index] ?? 0)),
      ),
    ])
  },
})

const double = mapped('double', (x) => 2 * x)
const request = (over: Partial<InferRequest> = {}) => requestOf([fp32('in', [2], [1, 2])], over)

/** A promise to settle by hand. */
function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {}
  const promise = new Promise<void>((done) => (resolve = done))
  return { promise, resolve }
}

describe('an ensemble', () => {
  it('passes tensors from step to step by its maps, in whatever order the steps are written', async () => {
    const ensemble = await ensembleOf(
      [step('sum', { a: 'in', b: 'twice' }, { y: 'out' }), step('double', { x: 'in' }, { y: 'twice' })],
      [sum, double],
    )
    const [out] = await ensemble.infer(request())
    expect(out?.name).toBe('out')
    expect(valuesOf(out)).toEqual([3, 6])
  })

  it('runs steps side by side where the graph allows', async () => {
    const both = deferred()
    let running = 0
    const slow = (name: string) =>
      mapped(name, (x) => x, {
        infer: async () => {
          running += 1
          if (running === 2) both.resolve()
          await both.promise
          return [fp32('y', [2], [1, 1])]
        },
      })
    const ensemble = await ensembleOf(
      [
        step('left', { x: 'in' }, { y: 'l' }),
        step('right', { x: 'in' }, { y: 'r' }),
        step('sum', { a: 'l', b: 'r' }, { y: 'out' }),
      ],
      [slow('left'), slow('right'), sum],
    )
    expect(valuesOf((await ensemble.infer(request()))[0])).toEqual([2, 2])
  })

  it('hands tensors on as they are, without copying them', async () => {
    const seen: Uint8Array[] = []
    const watching = (name: string) =>
      mapped(name, (x) => x, {
        infer: ({ inputs: [input] }) => {
          seen.push(input!.data)
          return Promise.resolve([{ ...input!, name: 'y' }])
        },
      })
    const ensemble = await ensembleOf(
      [step('one', { x: 'in' }, { y: 'between' }), step('two', { x: 'between' }, { y: 'out' })],
      [watching('one'), watching('two')],
    )
    const input = fp32('in', [2], [1, 2])
    const [out] = await ensemble.infer(requestOf([input]))
    expect([...seen, out?.data].every((data) => data === input.data)).toBe(true)
  })

  it('lets a tensor be moved only by its last and only reader', async () => {
    const marks: Record<string, unknown> = {}
    const watching = (name: string, inputs: readonly TensorSpec[]) =>
      plainModel({
        name,
        inputs,
        outputs: [spec('y', [2])],
        infer: (asked) => {
          for (const input of asked.inputs) marks[`${name}.${input.name}`] = input.movable
          return Promise.resolve([{ ...fp32('y', [2], [0, 0]), movable: true }])
        },
      })
    const ensemble = await ensembleOf(
      [
        step('first', { x: 'in' }, { y: 'shared' }),
        step('second', { x: 'shared' }, { y: 'own' }),
        step('third', { a: 'shared', b: 'own' }, { y: 'out' }),
      ],
      [
        watching('first', [spec('x', [2])]),
        watching('second', [spec('x', [2])]),
        watching('third', [spec('a', [2]), spec('b', [2])]),
      ],
    )
    const [out] = await ensemble.infer(requestOf([{ ...fp32('in', [2], [1, 2]), movable: true }]))
    expect(marks).toEqual({ 'first.x': true, 'second.x': undefined, 'third.a': undefined, 'third.b': true })
    expect(out?.movable).toBe(true)
  })

  it('leaves out steps that no wanted output needs', async () => {
    const config = parseModelConfig(
      `platform: "ensemble"
       input { name: "in" data_type: TYPE_FP32 dims: [ 2 ] }
       output { name: "out" data_type: TYPE_FP32 dims: [ 2 ] }
       output { name: "other" data_type: TYPE_FP32 dims: [ 2 ] }
       ensemble_scheduling { ${step('double', { x: 'in' }, { y: 'out' })} ${step('broken', { x: 'in' }, { y: 'other' })} }`,
      'config.pbtxt',
    )
    const broken = mapped('broken', (x) => x, { infer: () => Promise.reject(new Error('must not run')) })
    const ensemble = await createEnsembleModel(
      { name: 'e', version: '1', config, versionDir: '', labels: new Map() },
      { find: (name) => [double, broken].find((m) => m.name === name), serve: directModel, log: silentLog() },
    )
    const outputs = await ensemble.infer(request({ outputs: [{ name: 'out', classification: 0 }] }))
    expect(outputs.map(({ name }) => name)).toEqual(['out'])
  })

  it('nests in another ensemble', async () => {
    const inner = await ensembleOf([step('double', { x: 'in' }, { y: 'out' })], [double])
    const nested = plainModel({
      ...inner,
      name: 'inner',
      inputs: inner.inputs,
      outputs: inner.outputs,
      config: inner.config,
      infer: (r) => inner.infer(r),
    })
    const outer = await ensembleOf(
      [step('inner', { in: 'in' }, { out: 'between' }), step('double', { x: 'between' }, { y: 'out' })],
      [nested, double],
    )
    expect(valuesOf((await outer.infer(request()))[0])).toEqual([4, 8])
  })

  it('asks for the version that serves now, and passes on priority, time-out and sequence', async () => {
    const asked: InferRequest[] = []
    const versioned = (version: string) =>
      mapped('double', (x) => x * Number(version), {
        version,
        infer: (r) => {
          asked.push(r)
          return Promise.resolve([fp32('y', [2], [Number(version), 0])])
        },
      })
    const serving = [versioned('1')]
    const ensemble = await ensembleOf([step('double', { x: 'in' }, { y: 'out' })], serving)
    await ensemble.infer(request())
    serving[0] = versioned('2')
    const sequence = { id: '7', start: true, end: false }
    const [out] = await ensemble.infer(request({ priority: 2, timeoutUs: 50, sequence }))
    expect(valuesOf(out)[0]).toBe(2)
    expect(asked[1]).toMatchObject({ model: 'double', version: '2', priority: 2, timeoutUs: 50, sequence })
  })

  it('gives the labels of the model that writes the output', async () => {
    const labelled = mapped('double', (x) => x, {
      labels: (output) => (output === 'y' ? ['cat', 'dog'] : []),
    })
    const ensemble = await ensembleOf([step('double', { x: 'in' }, { y: 'out' })], [labelled])
    expect(ensemble.labels('out')).toEqual(['cat', 'dog'])
  })
})

describe('an ensemble whose steps fail', () => {
  it('throws what the step threw, cancels the others and waits for them', async () => {
    const ended: string[] = []
    const failing = mapped('failing', (x) => x, {
      infer: () => Promise.reject(new ServingError('UNAVAILABLE', 'Exceeds maximum queue size', 'REJECTED')),
    })
    const waiting = mapped('waiting', (x) => x, {
      infer: ({ signal }) =>
        new Promise<readonly Tensor[]>((_, reject) => {
          const cancelled = () => {
            ended.push('waiting')
            reject(new ServingError('CANCELLED', 'cancelled', 'CANCELED'))
          }
          if (signal?.aborted === true) cancelled()
          else signal?.addEventListener('abort', cancelled)
        }),
    })
    const ensemble = await ensembleOf(
      [
        step('waiting', { x: 'in' }, { y: 'l' }),
        step('failing', { x: 'in' }, { y: 'r' }),
        step('sum', { a: 'l', b: 'r' }, { y: 'out' }),
      ],
      [waiting, failing, sum],
    )
    await expect(ensemble.infer(request())).rejects.toMatchObject({
      status: 'UNAVAILABLE',
      message: "in ensemble 'e', Exceeds maximum queue size",
      reason: 'OTHER',
    })
    expect(ended).toEqual(['waiting'])
    expect(ensemble.statistics().inference).toMatchObject({ fail: { count: 1 }, success: { count: 0 } })
  })

  it('is unavailable while a step has no version that serves', async () => {
    const serving = [double]
    const ensemble = await ensembleOf([step('double', { x: 'in' }, { y: 'out' })], serving)
    serving.pop()
    await expect(ensemble.infer(request())).rejects.toMatchObject({ status: 'UNAVAILABLE' })
  })

  it('refuses requests after it is closed, when those in flight have ended', async () => {
    const gate = deferred()
    const slow = mapped('double', (x) => x, {
      infer: async () => {
        await gate.promise
        return [fp32('y', [2], [5, 5])]
      },
    })
    const ensemble = await ensembleOf([step('double', { x: 'in' }, { y: 'out' })], [slow])
    const running = ensemble.infer(request())
    const closed = ensemble.stop(10_000)
    await expect(ensemble.infer(request())).rejects.toMatchObject({ status: 'UNAVAILABLE' })
    gate.resolve()
    await closed
    expect(valuesOf((await running)[0])).toEqual([5, 5])
  })
})

describe('max_inflight_requests', () => {
  it('lets that many requests into a step, the others wait in order or are cancelled', async () => {
    const gates: ReturnType<typeof deferred>[] = []
    const slow = mapped('double', (x) => x, {
      infer: async ({ inputs: [input] }) => {
        const gate = deferred()
        gates.push(gate)
        await gate.promise
        return [{ ...input!, name: 'y' }]
      },
    })
    const ensemble = await ensembleOf(
      [step('double', { x: 'in' }, { y: 'out' }), 'max_inflight_requests: 2'],
      [slow],
    )
    const cancel = new AbortController()
    const first = ensemble.infer(request())
    const second = ensemble.infer(request())
    const third = ensemble.infer(request({ signal: cancel.signal }))
    const fourth = ensemble.infer(request())
    const turn = () => new Promise((resolve) => setImmediate(resolve))
    await turn()
    expect(gates).toHaveLength(2)
    cancel.abort()
    await expect(third).rejects.toMatchObject({ status: 'CANCELLED' })
    gates[0]!.resolve()
    await first
    await turn()
    expect(gates).toHaveLength(3)
    gates[1]!.resolve()
    gates[2]!.resolve()
    await Promise.all([second, fourth])
  })
})

describe('loading an ensemble', () => {
  const wide = mapped('wide', (x) => x, { outputs: [spec('y', [3])] })
  const bytes = mapped('bytes', (x) => x, { inputs: [spec('x', [2], 'UINT8')] })
  it.each([
    [
      'a model that does not serve',
      [step('absent', { x: 'in' }, { y: 'out' })],
      'step[0] (absent) needs model "absent"',
    ],
    [
      'an input the model lacks',
      [step('double', { z: 'in' }, { y: 'out' })],
      'step[0] (double) has no input "z"',
    ],
    [
      'an output the model lacks',
      [step('double', { x: 'in' }, { z: 'out' })],
      'step[0] (double) has no output "z"',
    ],
    [
      'a tensor nobody writes',
      [step('double', { x: 'inn' }, { y: 'out' })],
      'reads "inn", which nothing writes',
    ],
    [
      'an input left open',
      [step('sum', { a: 'in' }, { y: 'out' })],
      'step[0] (sum) is not given its input "b"',
    ],
    [
      'two writers of a tensor',
      [step('double', { x: 'in' }, { y: 'out' }), step('sum', { a: 'in', b: 'in' }, { y: 'out' })],
      '"out" is written by step[1] (sum) and is already an output of step[0] (double)',
    ],
    [
      'an output nobody writes',
      [step('double', { x: 'in' }, { y: 'other' })],
      'no step writes the output "out"',
    ],
    [
      'another type',
      [step('bytes', { x: 'in' }, { y: 'out' })],
      'input "x" of step[0] (bytes) is TYPE_UINT8 [2], but "in", an input of the ensemble, is TYPE_FP32 [2]',
    ],
    [
      'another shape',
      [step('wide', { x: 'in' }, { y: 'w' }), step('double', { x: 'w' }, { y: 'out' })],
      'input "x" of step[1] (double) is TYPE_FP32 [2], but "w", an output of step[0] (wide), is TYPE_FP32 [3]',
    ],
    [
      'an output of another shape',
      [step('wide', { x: 'in' }, { y: 'out' })],
      'the output of the ensemble is TYPE_FP32 [2], but "out", an output of step[0] (wide), is TYPE_FP32 [3]',
    ],
    [
      'a circle',
      [step('sum', { a: 'in', b: 'back' }, { y: 'out' }), step('double', { x: 'out' }, { y: 'back' })],
      'steps wait for each other in a circle: step[0] (sum) waits for "back"; step[1] (double) waits for "out"',
    ],
    ['no steps', [], 'it has no ensemble_scheduling steps'],
  ])('refuses %s, naming step and tensor', async (_, steps, problem) => {
    await expect(ensembleOf(steps, [double, sum, wide, bytes])).rejects.toThrow(problem)
  })

  it('refuses a batch size that a step does not take', async () => {
    const few = mapped('few', (x) => x, {
      config: { ...double.config, max_batch_size: 2 },
      inputs: [spec('x', [-1, 2])],
      outputs: [spec('y', [-1, 2])],
    })
    await expect(
      ensembleOf([step('few', { x: 'in' }, { y: 'out' })], [few], 'max_batch_size: 4'),
    ).rejects.toThrow('ensemble "e" allows maximum batch size 4, but step[0] (few) allows 2')
  })

  it.each([
    [
      'an unknown input',
      requestOf([fp32('inn', [2], [1, 2])]),
      "Got input(s) ['inn'], but missing required input(s) ['in']",
    ],
    ['a missing input', requestOf([]), 'expected 1 inputs but got 0 inputs'],
    [
      'another shape',
      requestOf([fp32('in', [3], [1, 2, 3])]),
      "unexpected shape for input 'in' for model 'e'",
    ],
    [
      'another type',
      requestOf([{ ...fp32('in', [2], [1, 2]), datatype: 'INT32' }]),
      "'in' data-type is 'INT32', but model 'e' expects 'FP32'",
    ],
    [
      'an unknown output',
      request({ outputs: [{ name: 'nothing', classification: 0 }] }),
      "unexpected inference output 'nothing' for model 'e'",
    ],
  ])('answers a request with %s in the words of Triton', async (_, asked, problem) => {
    const ensemble = await ensembleOf([step('double', { x: 'in' }, { y: 'out' })], [double])
    await expect(ensemble.infer(asked)).rejects.toThrow(problem)
  })
})
