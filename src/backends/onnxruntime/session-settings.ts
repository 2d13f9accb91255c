import { ModelConfigError } from '../../repository/errors.js'
import type { ModelConfig } from '../../repository/model-config.js'
import type { OrtSessionOptions } from './ort-session.js'
import type { NativeOptions } from './native-options.js'

type Settings = Omit<
  OrtSessionOptions,
  'path' | 'providers' | 'deviceId' | 'graphOptimization' | keyof NativeOptions
>

/** No machine has more processors, and each is a thread of every instance. */
const mostThreads = 1_024

/** ONNX Runtime's own session settings, by their whole key: the `parameters` that begin with `session.`. */
export function sessionConfig({ parameters }: ModelConfig): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(parameters)
      .filter(([key]) => key.startsWith('session.'))
      .map(([key, value]) => [key, value.string_value ?? '']),
  )
}

/**
 * Session options from the `parameters` of a configuration, with the names of Triton's ONNX Runtime backend.
 *
 * @param intraOpThreads - where the configuration says nothing.
 * @throws ModelConfigError naming the parameter
 */
export function sessionSettings(config: ModelConfig, intraOpThreads: number): Settings {
  const number = (key: string, most: number) => wholeNumber(config, key, most)
  const interOpThreads = number('inter_op_thread_count', mostThreads)
  const arena = number('enable_mem_arena', 1)
  const pattern = number('enable_mem_pattern', 1)
  return {
    intraOpThreads: number('intra_op_thread_count', mostThreads) ?? intraOpThreads,
    ...(interOpThreads === undefined ? {} : { interOpThreads }),
    ...(number('execution_mode', 1) === 1 ? { parallelExecution: true } : {}),
    ...(arena === undefined ? {} : { memoryArena: arena !== 0 }),
    ...(pattern === undefined ? {} : { memoryPattern: pattern !== 0 }),
    sessionConfig: sessionConfig(config),
  }
}

function wholeNumber(config: ModelConfig, key: string, most: number): number | undefined {
  const text = config.parameters[key]?.string_value
  if (text === undefined || text === '') return undefined
  if (!/^\d{1,4}$/.test(text) || Number(text) > most)
    throw new ModelConfigError(
      `parameter "${key}" is "${text}", but a whole number from 0 to ${most} is expected`,
      'Correct the parameter in config.pbtxt.',
    )
  return Number(text)
}
