import type { ModelConfig } from '../model-config.js'

/** A field that cannot mean what it says. `problem` begins with Triton's words where Triton refuses the same. */
export type ConfigFault = Readonly<{
  /** Path in the configuration, `output[0].reshape.shape`. */
  field: string
  /** Names the value. */
  problem: string
  /** What to write instead. */
  fix: string
}>

/** `[1, -1, 3]`. */
export function listed(values: readonly unknown[]): string {
  return `[${values.join(', ')}]`
}

/**
 * The largest batch; 0 is no batch dimension. `undefined` for a configuration that says nothing of batches and tensors, as both are
 * then taken from the model file.
 */
export function batchLimit({ max_batch_size: size, input, output }: ModelConfig): number | undefined {
  if (size === undefined && input.length === 0 && output.length === 0) return undefined
  return Math.max(0, size ?? 0)
}

/** Names that are there more than once, each once. */
export function repeated(names: readonly string[]): readonly string[] {
  return [...new Set(names.filter((name, index) => names.indexOf(name) !== index))]
}

/** A text or a type that is written: what a configuration leaves out is absent, whatever the type says. */
export function isGiven(value: string | undefined): value is string {
  return value !== undefined && value !== '' && value !== 'TYPE_INVALID'
}
