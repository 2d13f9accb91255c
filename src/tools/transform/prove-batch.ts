import ort from '../../backends/onnxruntime/onnxruntime.js'
import { ortTensor } from '../../backends/onnxruntime/ort-tensor.js'
import { inputShape, type PixelArray, pixelArray } from '../../detector/input-tensor.js'
import { outputNumbers } from '../split/compare-stages.js'
import { feed, pictureAt, type Pictures } from './frames.js'
import { prove, type Proof, type Side } from './prove.js'
import { ModelTransformError } from './transform-error.js'

/** Pictures of a batch. */
const batchSize = 3

/**
 * Proves a free batch: that the model alone says what the original says, and of each picture of a batch what it says of that picture alone.
 *
 * @throws ModelTransformError naming the output that differs, and by how much
 */
export async function proveBatch(
  step: string,
  original: Side,
  transformed: Side,
  pictures: Pictures,
  tolerance: number,
): Promise<Proof> {
  const proof = await prove(step, original, transformed, pictures, 'largest relative difference', tolerance)
  const { picture } = transformed.plan
  if (picture === undefined) return proof
  const { plan, tensor } = picture
  const fed = await Promise.all(
    pictures.paths.slice(0, batchSize).map(async (path) => feed(plan, await pictureAt(path))),
  )
  const session = await ort.InferenceSession.create(transformed.path, { logSeverityLevel: 4 })
  const run = async (values: readonly PixelArray[]) => {
    const length = values[0]!.length
    const all = new (pixelArray(plan.layout))(length * values.length)
    for (const [at, each] of values.entries()) all.set(each, at * length)
    return session.run({
      [plan.name]: ortTensor(tensor.type as ort.Tensor.Type, all, inputShape(plan, values.length)),
    })
  }
  try {
    const together = await run(fed.map(({ values }) => values))
    let measured = proof.measured
    for (const [at, { values }] of fed.entries())
      for (const [name, alone] of Object.entries(await run([values]))) {
        const difference = relativeDifference(outputNumbers(alone), outputNumbers(together[name]!), at)
        if (!(difference <= tolerance))
          throw new ModelTransformError(
            `${step} cannot be done: output "${name}" of a picture in a batch differs from that of the picture alone by ${difference.toPrecision(2)} of its largest value`,
            'A node mixes the pictures of a batch, as DynamicQuantizeLinear does with its one scale. Export the model with a free batch.',
          )
        measured = Math.max(measured, difference)
      }
    return { ...proof, measured, on: `${proof.on}, alone and ${fed.length} at once` }
  } catch (error) {
    if (error instanceof ModelTransformError) throw error
    throw new ModelTransformError(
      `${step} cannot be done: the model does not run with ${fed.length} pictures at once: ${(error instanceof Error ? error.message : String(error)).split('\n')[0]}`,
      'Something in the graph is made for one picture. Export the model with a free batch.',
      error,
    )
  } finally {
    await session.release()
  }
}

/** @param at - place of the picture in the batch. */
function relativeDifference(
  alone: ArrayLike<number | bigint>,
  together: ArrayLike<number | bigint>,
  at: number,
): number {
  if (together.length < alone.length * (at + 1)) return Infinity
  let difference = 0
  let scale = 1e-12
  for (let i = 0; i < alone.length; i++) {
    const value = Number(alone[i])
    difference = Math.max(difference, Math.abs(value - Number(together[at * alone.length + i])))
    scale = Math.max(scale, Math.abs(value))
  }
  return difference / scale
}
