import { beforeEach, describe, expect, it } from 'vitest'
import { addJsModel, addModel } from '../support/onnx-models.js'
import { floatsOf, fp32Input, ServedRepository } from '../support/served-repository.js'
import { tempDir } from '../support/temp-dir.js'

const optional = (name: string, is = true) =>
  `input { name: "${name}" data_type: TYPE_FP32 dims: [ 1 ] ${is ? 'optional: true' : ''} }`
const output = (name: string) => `output { name: "${name}" data_type: TYPE_FP32 dims: [ 1 ] }`
const tensors = `max_batch_size: 4 ${optional('A')} ${optional('C')} ${output('B')} ${output('D')}`
/** Each output is its input; without that there is none. */
const pairs = `export default () => ({
  execute({ inputs: { A, C } }) { return { ...(A && { B: A }), ...(C && { D: C }) } }
})`

type Map = Readonly<Record<string, string>>

function step(model: string, inputs: Map, outputs: Map): string {
  const maps = (kind: string, map: Map) =>
    Object.entries(map).map(([key, value]) => `${kind} { key: "${key}" value: "${value}" }`)
  return `step { model_name: "${model}" ${maps('input_map', inputs).join(' ')} ${maps('output_map', outputs).join(' ')} }`
}

const ensemble = (steps: string) => `platform: "ensemble" ${tensors} ensemble_scheduling { ${steps} }`

const a = fp32Input('A', [1, 1], [1])
const c = fp32Input('C', [1, 1], [2])
const b = ['B', [1, 1], [1]]
const d = ['D', [1, 1], [2]]

let served: ServedRepository

beforeEach(async () => {
  const dir = tempDir()
  const whole = { A: 'A', C: 'C' }
  addJsModel(dir, 'pairs', tensors, pairs)
  addJsModel(
    dir,
    'needs',
    `max_batch_size: 4 ${optional('A', false)} ${output('B')}`,
    'export default () => ({ execute: ({ inputs: { A } }) => ({ B: A }) })',
  )
  addModel(dir, 'wrapped', { config: ensemble(step('pairs', whole, { B: 'B', D: 'D' })) })
  addModel(dir, 'twice', {
    config: ensemble(
      step('pairs', whole, { B: 't', D: 'u' }) + step('pairs', { A: 't', C: 'u' }, { B: 'B', D: 'D' }),
    ),
  })
  // The second step is connected by one of its inputs alone.
  addModel(dir, 'partly', {
    config: ensemble(step('pairs', whole, { B: 't' }) + step('pairs', { C: 't' }, { B: 'B', D: 'D' })),
  })
  addModel(dir, 'nested', {
    config: ensemble(
      step('twice', whole, { B: 't', D: 'u' }) + step('wrapped', { A: 't', C: 'u' }, { B: 'B', D: 'D' }),
    ),
  })
  addModel(dir, 'strict', {
    config: ensemble(step('pairs', whole, { B: 't', D: 'D' }) + step('needs', { A: 't' }, { B: 'B' })),
  })
  served = await ServedRepository.of(dir, { allowJs: true })
})

describe.each(['pairs', 'wrapped', 'twice', 'nested'])('optional inputs of %s', (model) => {
  it.each([
    ['all', [a, c], undefined, [b, d]],
    ['the first alone', [a], undefined, [b]],
    ['the second alone', [c], undefined, [d]],
    ['the output that there is', [a], ['B'], [b]],
    ['the other way round', [c, a], ['D', 'B'], [d, b]],
  ])('an output whose input is left out is left out: %s', async (_, inputs, outputs, expected) => {
    for (const heard of await served.both(model, inputs, outputs)) expect(floatsOf(heard)).toEqual(expected)
  })

  it('an output that is asked for by name and that there is not is an error', async () => {
    for (const heard of await served.both(model, [a], ['B', 'D']))
      expect(heard).toMatchObject({ error: expect.stringContaining("'D'") as string })
  })
})

describe('a step of an ensemble', () => {
  it('may be connected by some of its inputs alone', async () => {
    for (const heard of await served.both('partly', [a, c]))
      expect(floatsOf(heard)).toEqual([['D', [1, 1], [1]]])
  })

  it('that needs an input which the step before it did not give is named', async () => {
    for (const heard of await served.both('strict', [a, c])) expect(floatsOf(heard)).toEqual([b, d])
    for (const heard of await served.both('strict', [c]))
      expect(heard).toMatchObject({
        error: expect.stringMatching(
          /^in ensemble 'strict', .*'needs'.*missing required input\(s\) \['A'\]/,
        ) as string,
      })
  })
})

it('a model that gives less without a reason is an error still', async () => {
  const dir = tempDir()
  addJsModel(
    dir,
    'forgets',
    tensors.replaceAll('optional: true', ''),
    'export default () => ({ execute: ({ inputs: { A } }) => ({ B: A }) })',
  )
  const forgetful = await ServedRepository.of(dir, { allowJs: true })
  for (const heard of await forgetful.both('forgets', [a, c]))
    expect(heard).toMatchObject({ error: "the backend gave no output 'D'" })
})
