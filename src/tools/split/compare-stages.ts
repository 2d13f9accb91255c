import ort from '../../backends/onnxruntime/onnxruntime.js'
import { ModelInvalidError } from '../../repository/errors.js'
import { float16Bits, floatsOf } from '../../tensors/elements.js'
import type { ModelTensor } from '../../tensors/tensor.js'
import { ortTensor } from '../../backends/onnxruntime/ort-tensor.js'
import { randomInputs } from './random-inputs.js'

/** How far the stages are from the whole model. */
export type Comparison = Readonly<{
  runs: number
  /** Largest difference of an element, and the same divided by the largest value of its output. */
  largest: number
  largestRelative: number
}>

export type StageFile = Readonly<{ path: string; outputs: readonly string[] }>

/**
 * Runs the whole model and its stages on the same random inputs.
 *
 * @throws ModelInvalidError if an output is further away than `tolerance`, relative to its largest value.
 */
export async function compareStages(
  wholePath: string,
  inputs: readonly ModelTensor[],
  outputs: readonly string[],
  stages: readonly StageFile[],
  runs: number,
  tolerance: number,
): Promise<Comparison> {
  let largest = 0
  let largestRelative = 0
  const whole = await open(wholePath)
  const parts = await Promise.all(stages.map(({ path }) => open(path)))
  try {
    for (let seed = 1; seed <= runs; seed++) {
      const feeds = randomInputs(inputs, 1, seed)
      const expected = await whole.run(feeds, [...outputs])
      const found = await runStages(parts, feeds)
      for (const name of outputs) {
        const { difference, scale } = distance(expected[name], found[name])
        largest = Math.max(largest, difference)
        largestRelative = Math.max(largestRelative, difference / scale)
      }
    }
  } finally {
    await Promise.all([whole, ...parts].map((session) => session.release()))
  }
  if (!(largestRelative <= tolerance))
    throw new ModelInvalidError(
      `the stages answer otherwise than the whole model: an output differs by ${largest}, ${largestRelative} of its largest value`,
      'This is a fault in the cut, or a model that does not answer the same twice; nothing was written.',
    )
  return { runs, largest, largestRelative }
}

function open(path: string): Promise<ort.InferenceSession> {
  return ort.InferenceSession.create(path, { logSeverityLevel: 3 })
}

async function runStages(
  stages: readonly ort.InferenceSession[],
  feeds: Readonly<Record<string, ort.Tensor>>,
): Promise<Readonly<Record<string, ort.Tensor>>> {
  const known: Record<string, ort.Tensor> = { ...feeds }
  for (const stage of stages) {
    const own = Object.fromEntries(
      stage.inputNames.flatMap((name) => (name in known ? [[name, known[name]!]] : [])),
    )
    for (const [name, { type, data, dims }] of Object.entries(await stage.run(own)))
      known[name] = ortTensor(type, data, dims)
  }
  return known
}

function distance(
  expected: ort.Tensor | undefined,
  found: ort.Tensor | undefined,
): Readonly<{ difference: number; scale: number }> {
  if (expected === undefined || found === undefined || expected.dims.join() !== found.dims.join())
    return { difference: Infinity, scale: 1 }
  const a = outputNumbers(expected)
  const b = outputNumbers(found)
  let difference = 0
  let scale = 1e-12
  for (let i = 0; i < a.length; i++) {
    const value = Number(a[i])
    if (Number.isNaN(value) && Number.isNaN(Number(b[i]))) continue
    difference = Math.max(difference, Math.abs(value - Number(b[i])))
    scale = Math.max(scale, Math.abs(value))
  }
  return { difference, scale }
}

/** Numbers of an output; of float16 as floats. */
export function outputNumbers({ type, data }: ort.Tensor): ArrayLike<number | bigint> {
  return type === 'float16'
    ? floatsOf(float16Bits(data as ArrayBufferView))
    : (data as ArrayLike<number | bigint>)
}
