import type { ModelConfig } from '../model-config.js'
import { type ConfigType, datatypeOfConfig, elementBytes } from '../../tensors/element-type.js'
import { elementCount } from '../../tensors/tensor.js'
import type { ConfigFault } from './fault.js'
import { configuredInstances } from './instance-faults.js'

/** Steps that belong to an ensemble have a thread each. */
const mostSteps = 128
const mostWarmUps = 100
/** Of all instances, for their runs. */
const mostThreads = 1024
/** Of all that warm-ups send, made at the load and kept. */
const mostWarmUpBytes = 256 * 1024 ** 2

/** What a model asks for at its load, before any client does: none may be so much that the other models of the process suffer. */
export function sizeFaults(config: ModelConfig): readonly ConfigFault[] {
  const { name: model = '', ensemble_scheduling } = config
  const steps = ensemble_scheduling?.step.length ?? 0
  return [
    ...above('ensemble_scheduling.step', `${steps} steps of ensemble '${model}'`, steps, mostSteps),
    ...threadFaults(config),
    ...warmUpFaults(config),
  ]
}

function threadFaults(config: ModelConfig): readonly ConfigFault[] {
  const { name: model = '', parameters } = config
  const instances = Math.max(1, configuredInstances(config))
  return ['intra_op_thread_count', 'inter_op_thread_count'].flatMap((key) => {
    const threads = instances * (Number(parameters[key]?.string_value) || 0)
    return above(
      `parameters["${key}"]`,
      `instances of ${model} with ${threads} threads`,
      threads,
      mostThreads,
    )
  })
}

function warmUpFaults({ name: model = '', model_warmup: warmUps }: ModelConfig): readonly ConfigFault[] {
  const bytes = warmUps.reduce((sum, { batch_size = 1, inputs }) => {
    const each = Object.values(inputs).map(({ data_type, dims }) => bytesOf(data_type, dims))
    return sum + Math.max(1, batch_size) * each.reduce((all, one) => all + one, 0)
  }, 0)
  return [
    ...above('model_warmup', `${warmUps.length} warm-ups of ${model}`, warmUps.length, mostWarmUps),
    ...above('model_warmup.inputs', `warm-ups of ${model} with ${bytes} bytes`, bytes, mostWarmUpBytes),
  ]
}

function above(field: string, problem: string, value: number, most: number): readonly ConfigFault[] {
  return value > most ? [{ field, problem, fix: `at most ${most} are taken` }] : []
}

/** Open sizes count once. */
function bytesOf(type: ConfigType | undefined, dims: readonly number[]): number {
  return elementCount(dims.map((size) => Math.max(1, size))) * leastBytes(type)
}

function leastBytes(type: ConfigType | undefined): number {
  const datatype = datatypeOfConfig(type ?? 'TYPE_INVALID')
  // An empty string has its length.
  return datatype === 'BYTES' ? 4 : datatype === undefined ? 1 : elementBytes(datatype)
}
