import { join } from 'node:path'
import { ModelConfigError } from '../repository/errors.js'
import type { ModelConfig, ModelWarmup } from '../repository/model-config.js'
import type { BackendInstance, Execution } from './backend.js'
import type { Tensor } from '../tensors/tensor.js'
import { tensorFromFile } from './data-file.js'
import { filledTensor, randomTensor } from './filled-tensor.js'

export type WarmUp = Readonly<{ name: string; batch: readonly Execution[]; count: number }>

/**
 * The requests of `model_warmup`. Data files lie in `<model>/warmup`.
 *
 * @throws ModelConfigError naming the warm-up and the input
 */
export async function warmUpRequests(config: ModelConfig, modelDir: string): Promise<readonly WarmUp[]> {
  const warmUps: WarmUp[] = []
  for (const warmUp of config.model_warmup) {
    const name = warmUp.name ?? ''
    const inputs: Tensor[] = []
    for (const [input, data] of Object.entries(warmUp.inputs))
      inputs.push(await warmUpTensor(config, modelDir, name, input, data))
    const execution: Execution = {
      inputs: new Map(inputs.map((tensor) => [tensor.name, tensor])),
      outputs: config.output.map((output) => output.name),
      batchSize: 1,
      sequence: undefined,
      signal: undefined,
    }
    const requests = Math.max(1, warmUp.batch_size ?? 1)
    warmUps.push({
      name,
      batch: Array.from({ length: requests }, () => execution),
      count: Math.max(1, warmUp.count ?? 1),
    })
  }
  return warmUps
}

/** Runs warm-up requests on an instance. @throws ModelConfigError if one fails; the instance is then closed */
export async function warmUp(instance: BackendInstance, warmUps: readonly WarmUp[]): Promise<void> {
  try {
    for (const { batch, count } of warmUps)
      for (let run = 0; run < count; run++) {
        const { results } = await instance.execute(batch)
        for (const result of results) if (result instanceof Error) throw result
      }
  } catch (error) {
    await instance.close()
    throw warmUpError(error)
  }
}

export function warmUpError(error: unknown): ModelConfigError {
  return new ModelConfigError(
    `model_warmup failed: ${error instanceof Error ? error.message : String(error)}`,
    'Correct the inputs of model_warmup in config.pbtxt.',
    error,
  )
}

async function warmUpTensor(
  config: ModelConfig,
  modelDir: string,
  warmUpName: string,
  input: string,
  data: ModelWarmup['inputs'][string],
): Promise<Tensor> {
  const { data_type = 'TYPE_INVALID', dims, input_data_file = '' } = data
  const shape = (config.max_batch_size ?? 0) > 0 ? [1, ...dims] : dims
  const wrong = (problem: string) =>
    new ModelConfigError(
      `model_warmup "${warmUpName}", input "${input}": ${problem}`,
      'Give dims without -1, and zero_data, random_data or a file in the folder "warmup" of the model.',
    )
  if (input_data_file === '')
    return data.random_data === true
      ? randomTensor(input, data_type, shape)
      : filledTensor(input, data_type, shape)
  return tensorFromFile(
    filledTensor(input, data_type, shape),
    { dir: join(modelDir, 'warmup'), file: input_data_file, takesText: config.backend === 'onnxruntime' },
    wrong,
  )
}
