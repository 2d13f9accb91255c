import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { echoOnnx } from './model-repository.js'
import { buildOnnx } from './onnx-builder.js'
import { addModel } from './onnx-models.js'
import { adder, column, controls, mirror } from './sequence-models.js'

/**
 * Answers with the number of its turn. A negative value waits until the file `open` lies beside the model, and every value leaves the
 * files `began<value>` and `ran<value>` there, so that a client decides what runs when.
 */
const gate = `
import { existsSync, writeFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'

export default ({ versionDir }) => {
  let turns = 0
  return {
    async execute({ inputs }) {
      const [value] = inputs.value.data
      const turn = ++turns
      writeFileSync(versionDir + '/began' + value, '')
      while (value < 0 && !existsSync(versionDir + '/open')) await pause(5)
      writeFileSync(versionDir + '/ran' + value, '')
      return { turn: { shape: [1, 1], data: Float32Array.of(turn) } }
    },
  }
}
`

const gateConfig = (instances: number, batching: string) => `
backend: "js"
max_batch_size: 1
input { name: "value" data_type: TYPE_FP32 dims: 1 }
output { name: "turn" data_type: TYPE_FP32 dims: 1 }
instance_group { count: ${instances} kind: KIND_CPU }
dynamic_batching { ${batching} }`

/** The id of the sequence, as text. */
const named = buildOnnx({
  inputs: [column('INPUT'), { name: 'CORRID', type: 'string', shape: ['n', 1] }],
  outputs: [column('VALUE'), { name: 'ID', type: 'string', shape: ['n', 1] }],
  nodes: [
    { op: 'Identity', inputs: ['INPUT'], outputs: ['VALUE'] },
    { op: 'Identity', inputs: ['CORRID'], outputs: ['ID'] },
  ],
})

const sequences = (batching: string, idleUs = 60_000_000) =>
  `max_batch_size: 4 instance_group { kind: KIND_CPU count: 1 } sequence_batching { max_sequence_idle_microseconds: ${idleUs} ${batching} }`
const state = 'state { input_name: "SUM_IN" output_name: "SUM_OUT" data_type: TYPE_FP32 dims: 1 }'

/** A batch of four, or what the queue says. */
const held = (policy: string, delayUs = 60_000_000) =>
  `max_batch_size: 4 instance_group { kind: KIND_CPU count: 1 } dynamic_batching { max_queue_delay_microseconds: ${delayUs} default_queue_policy { ${policy} } }`

/** Models whose queues, sequences and cache can be told apart from outside. They need `models.allowJsBackends`. */
export function schedulingRepository(): Readonly<{ dir: string; models: string }> {
  const dir = mkdtempSync(join(tmpdir(), 'gantry-scheduling-'))
  const models = join(dir, 'models')
  mkdirSync(models)
  const echo = echoOnnx('float32', ['batch', 1])
  const onnx: Record<string, readonly [Uint8Array, string]> = {
    full: [echo, held('max_queue_size: 2 default_timeout_microseconds: 1000000')],
    may_shorten: [echo, held('default_timeout_microseconds: 60000000 allow_timeout_override: true')],
    may_not_lengthen: [echo, held('default_timeout_microseconds: 300000 allow_timeout_override: true')],
    no_timeout: [echo, held('allow_timeout_override: true', 300_000)],
    no_override: [echo, held('default_timeout_microseconds: 60000000', 300_000)],
    mirror_direct: [mirror, sequences(`${controls} direct { }`)],
    mirror_oldest: [mirror, sequences(`${controls} oldest { max_candidate_sequences: 4 }`)],
    named: [
      named,
      sequences(
        'control_input { name: "CORRID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } }',
      ),
    ],
    sum_direct: [adder, sequences(`${state} direct { }`)],
    sum_oldest: [adder, sequences(`${state} oldest { max_candidate_sequences: 4 }`)],
    slots: [adder, sequences(state)],
    slots_oldest: [adder, sequences(`${state} oldest { max_candidate_sequences: 4 }`)],
    soon_idle: [adder, sequences(state, 100_000)],
    cached: [echo, 'max_batch_size: 4 response_cache { enable: true }'],
  }
  for (const [name, [model, config]] of Object.entries(onnx)) addModel(models, name, { onnx: model, config })
  const gates = {
    levels: gateConfig(1, 'priority_levels: 3 default_priority_level: 2'),
    delayed: gateConfig(
      1,
      'default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 60000000 allow_timeout_override: true }',
    ),
    ordered: gateConfig(2, 'preserve_ordering: true'),
    unordered: gateConfig(2, ''),
  }
  for (const [name, config] of Object.entries(gates)) {
    mkdirSync(join(models, name, '1'), { recursive: true })
    writeFileSync(join(models, name, 'config.pbtxt'), config)
    writeFileSync(join(models, name, '1/model.mjs'), gate)
  }
  return { dir, models }
}
