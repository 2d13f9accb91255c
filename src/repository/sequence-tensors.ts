import type { ModelConfig } from './model-config.js'

/** Inputs of the model that the sequence scheduler fills in: clients do not see them, and the configuration does not list them. */
export function hiddenInputs({ sequence_batching: sequences }: ModelConfig): ReadonlySet<string> {
  return new Set([
    ...(sequences?.control_input ?? []).map((control) => control.name),
    ...(sequences?.state ?? []).map((state) => state.input_name),
  ])
}

/** Outputs of the model that the sequence scheduler keeps for the next request of a sequence. */
export function stateOutputs({ sequence_batching: sequences }: ModelConfig): ReadonlySet<string> {
  return new Set((sequences?.state ?? []).map((state) => state.output_name))
}
