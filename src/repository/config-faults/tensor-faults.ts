import { hiddenInputs, type ModelConfig, type ModelInput, type ModelOutput } from '../model-config.js'
import { batchLimit, type ConfigFault, isGiven, listed, repeated } from './fault.js'

/** Names, types, sizes and reshapes of inputs and outputs. */
export function tensorFaults(config: ModelConfig): readonly ConfigFault[] {
  return [
    ...config.input.flatMap((tensor, index) => faultsOf('input', tensor, index, config)),
    ...config.output.flatMap((tensor, index) => faultsOf('output', tensor, index, config)),
    ...twice('input', config.input),
    ...twice('output', config.output),
    ...filledTwice(config),
  ]
}

type Side = 'input' | 'output'

function faultsOf(
  side: Side,
  tensor: ModelInput | ModelOutput,
  index: number,
  config: ModelConfig,
): readonly ConfigFault[] {
  const { name, data_type, dims, reshape } = tensor
  const field = `${side}[${index}]`
  const model = config.name ?? ''
  if (!isGiven(name))
    return [
      {
        field: `${field}.name`,
        problem: `model ${side} must specify 'name' for ${model}`,
        fix: 'name the tensor',
      },
    ]
  const subject = `model ${side} '${name}'`
  const faults: ConfigFault[] = []
  if (!isGiven(data_type))
    faults.push({
      field: `${field}.data_type`,
      problem: `${subject} must specify 'data_type' for ${model}`,
      fix: 'write its type, such as TYPE_FP32',
    })
  if (dims.some(isNoSize))
    faults.push({
      field: `${field}.dims`,
      problem: `${subject} dimension must be integer >= 1, or -1 to indicate a variable-size dimension for ${model}: dims are ${listed(dims)}`,
      fix: 'write -1 where the size may vary',
    })
  else if (reshape !== undefined) {
    const problem = reshapeProblem(dims, reshape.shape, batchLimit(config) === 0)
    if (problem !== undefined)
      faults.push({
        field: `${field}.reshape.shape`,
        problem: `${subject} ${problem.words} for ${model}: ${problem.values}`,
        fix: problem.fix,
      })
  }
  return faults
}

function isNoSize(size: number): boolean {
  return size < 1 && size !== -1
}

type ReshapeProblem = Readonly<{ words: string; values: string; fix: string }>

/** Sizes that may vary keep their order, so what stands between two of them must hold as many elements on both sides. */
function reshapeProblem(
  dims: readonly number[],
  shape: readonly number[],
  isWithoutBatch: boolean,
): ReshapeProblem | undefined {
  if (shape.length === 0 && isWithoutBatch)
    return {
      words: 'cannot have empty reshape for non-batching model as scalar tensors are not supported',
      values: 'reshape is [] and max_batch_size 0',
      fix: 'write the shape that the model has',
    }
  if (shape.some(isNoSize))
    return {
      words: 'reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension',
      values: `reshape is ${listed(shape)}`,
      fix: 'write -1 where the size may vary',
    }
  const free = [dims, shape].map((sizes) => sizes.filter((size) => size === -1).length)
  const [inDims = 0, inShape = 0] = free
  if (inDims !== inShape)
    return {
      words:
        inDims > 0 && inShape > 0
          ? 'has different number of variable-size dimensions for dims and reshape'
          : 'has different size for dims and reshape',
      values: `reshape ${listed(shape)} has ${inShape} of -1, dims ${listed(dims)} have ${inDims}`,
      fix: 'give both the same number of -1',
    }
  const [ofDims, ofShape] = [countsBetweenFree(dims), countsBetweenFree(shape)]
  if (ofDims.every((count, index) => count === ofShape[index])) return undefined
  return {
    words: 'has different size for dims and reshape',
    values: `reshape ${listed(shape)} has ${countText(ofShape)}, dims ${listed(dims)} have ${countText(ofDims)}`,
    fix:
      inDims === 0
        ? 'give both the same number of elements'
        : 'give both as many before, between and after -1',
  }
}

/** `[2, 4, -1, 6]` has 8 before its free size and 6 behind it. */
function countsBetweenFree(sizes: readonly number[]): readonly number[] {
  const counts = [1]
  for (const size of sizes) {
    if (size === -1) counts.push(1)
    else counts.push(counts.pop()! * size)
  }
  return counts
}

function countText(counts: readonly number[]): string {
  return counts.length === 1 ? `${counts[0]} elements` : `${counts.join(', -1, ')} elements`
}

function twice(side: Side, tensors: readonly Readonly<{ name: string }>[]): readonly ConfigFault[] {
  return repeated(tensors.map(({ name }) => name).filter(isGiven)).map((name) => ({
    field: side,
    problem: `model ${side} '${name}' is specified more than once`,
    fix: 'leave one of them',
  }))
}

/** What the sequence scheduler fills in cannot come from the client too. */
function filledTwice(config: ModelConfig): readonly ConfigFault[] {
  const hidden = hiddenInputs(config)
  return config.input.flatMap(({ name }, index) =>
    isGiven(name) && hidden.has(name)
      ? [
          {
            field: `input[${index}].name`,
            problem: `model input '${name}' is also a control or a state of sequence_batching, which the server fills in`,
            fix: 'take it out of input',
          },
        ]
      : [],
  )
}
