/** One of Triton's test scripts, and what it is told so that it asks for what Gantry is. */
export type Suite = Readonly<{
  /** Folder below `qa`. */
  name: string
  env?: Readonly<Record<string, string>>
  /** Test -> what it needs that Gantry has not: it is run, and counts where it passes. */
  needs?: Readonly<Record<string, string>>
  /** Fewest tests that pass. */
  reach: number
}>

const onnx = { BACKENDS: 'onnx', TRITON_SERVER_CPU_ONLY: '1' }

/** Tests that fill the queue of Triton's scheduler before it begins: its variable TRITONSERVER_DELAY_SCHEDULER holds it back. */
const heldBack = [
  ...['backlog', 'backlog_fill', 'backlog_fill_no_end', 'backlog_same_correlation_id'],
  ...[
    'backlog_same_correlation_id_no_end',
    'backlog_sequence_timeout',
    'half_batch',
    'skip_batch',
    'full_batch',
  ],
  ...['ragged_batch', 'queue_delay_no_min_util', 'queue_delay_half_min_util', 'queue_delay_full_min_util'],
].map((name) => [`test_${name}`, "Triton's scheduler to be held back"] as const)

const python = "Triton's Python backend"
const elsewhere = "a backend whose code lies outside of the model's folder"

/** Tests of Triton's backends and of GPUs. */
const otherBackends = {
  test_parse_error_no_model_config: 'configurations that are not completed (--strict-model-config)',
  test_model_repository_index: 'PyTorch: the ensemble names its tensors',
  test_model_availability_on_reload: elsewhere,
  test_model_availability_on_reload_2: elsewhere,
  test_model_reload_fail: elsewhere,
  test_load_same_model_different_platform: 'TensorRT',
  test_load_gpu_limit: 'a GPU',
  test_concurrent_model_load: python,
  test_concurrent_model_instance_load_speedup: python,
  test_model_config_overwite: python,
  test_shutdown_while_background_unloading: python,
  test_shutdown_with_live_connection: python,
  test_load_new_model_version: python,
}

export const suites: readonly Suite[] = [
  { name: 'L0_scalar_io', reach: 1 },
  { name: 'L0_string_io', reach: 1 },
  { name: 'L0_optional_input', reach: 10 },
  { name: 'L0_infer', env: { ...onnx, ENSEMBLES: '1' }, reach: 44 },
  {
    name: 'L0_sequence_batcher',
    env: { ...onnx, ENSEMBLES: '0', MODEL_TRIALS: '0 4 v' },
    needs: Object.fromEntries(heldBack),
    reach: 25,
  },
  { name: 'L0_lifecycle', needs: otherBackends, reach: 28 },
]
