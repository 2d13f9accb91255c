/** One of Triton's test scripts, and what it is told so that it asks for what Gantry is. */
export type Suite = Readonly<{
  /** Folder below `qa`. */
  name: string
  env?: Readonly<Record<string, string>>
  /** Test, or `test:variant` -> what it needs that Gantry has not: it is run and told, and counts neither way. */
  needs?: Readonly<Record<string, string>>
  /** Fewest tests that pass. */
  reach: number
}>

const onnx = { BACKENDS: 'onnx', TRITON_SERVER_CPU_ONLY: '1' }

export const suites: readonly Suite[] = [
  { name: 'L0_scalar_io', reach: 1 },
  { name: 'L0_string_io', reach: 1 },
  { name: 'L0_optional_input', reach: 10 },
  { name: 'L0_infer', env: { ...onnx, ENSEMBLES: '1' }, reach: 46 },
  { name: 'L0_sequence_batcher', env: { ...onnx, ENSEMBLES: '0', MODEL_TRIALS: '0 4 v' }, reach: 25 },
  { name: 'L0_lifecycle', reach: 20 },
]
