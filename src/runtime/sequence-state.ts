import { join } from 'node:path'
import { ModelConfigError } from '../repository/errors.js'
import type { ModelConfig, SequenceState } from '../repository/model-config.js'
import type { Tensor } from '../tensors/tensor.js'
import { copyInTurns } from '../tensors/tensor-buffers.js'
import { tensorFromFile } from './data-file.js'
import { filledTensor } from './filled-tensor.js'

/** State that the server keeps for a model between the requests of a sequence: outputs of one run are inputs of the next. */
export type ImplicitState = Readonly<{
  /** Of a sequence that starts, by names of inputs. */
  initial: () => readonly Tensor[]
  /** Output -> input. */
  inputOf: ReadonlyMap<string, string>
}>

/**
 * @param modelDir - data files lie in `<model>/initial_state`.
 * @throws ModelConfigError naming the state
 */
export async function implicitState(config: ModelConfig, modelDir: string): Promise<ImplicitState> {
  const states = config.sequence_batching?.state ?? []
  const batched = (config.max_batch_size ?? 0) > 0
  const takesText = config.backend === 'onnxruntime'
  const initial: Tensor[] = []
  for (const state of states) initial.push(await initialState(state, { batched, modelDir, takesText }))
  return {
    initial: () => initial,
    inputOf: new Map(states.map((state) => [state.output_name, state.input_name])),
  }
}

/** The outputs that are state, as inputs of the next request. The bytes are copied: a slice would keep its batch in memory. */
export async function nextState(
  state: ImplicitState,
  outputs: readonly Tensor[],
): Promise<readonly Tensor[]> {
  const next: Tensor[] = []
  for (const { name, datatype, shape, data } of outputs) {
    const input = state.inputOf.get(name)
    if (input !== undefined) next.push({ name: input, datatype, shape, data: await copyInTurns(data) })
  }
  return next
}

/** Zeros unless the configuration has something else; sizes that are open start as 1. */
async function initialState(
  state: SequenceState,
  { batched, modelDir, takesText }: Readonly<{ batched: boolean; modelDir: string; takesText: boolean }>,
): Promise<Tensor> {
  const [given] = state.initial_state
  const dims = (given !== undefined && given.dims.length > 0 ? given.dims : state.dims).map((size) =>
    size === -1 ? 1 : size,
  )
  const zeros = filledTensor(state.input_name, state.data_type, batched ? [1, ...dims] : dims)
  const file = given?.data_file ?? ''
  if (file === '') return zeros
  return tensorFromFile(zeros, { dir: join(modelDir, 'initial_state'), file, takesText }, (problem) =>
    wrong(state, `has data_file "${file}": ${problem}`),
  )
}

function wrong({ input_name }: SequenceState, problem: string): ModelConfigError {
  return new ModelConfigError(
    `sequence_batching: state "${input_name}" ${problem}`,
    'Correct state in config.pbtxt.',
  )
}
